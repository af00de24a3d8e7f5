//! Results in fewer words, each with a handle by which the whole can be had again without running the
//! tool again.

use memory_core::entity::{Extract, Rules};
use memory_core::text::tokens;
use proto::transcript::{AnsweredCall, Entry};

use crate::summary::{RESULT, cut, one_line};

/// Tokens of a digest.
const DIGEST: usize = 300;
/// Characters of its beginning and of its end.
const BEGINNING: usize = 600;
const END: usize = 200;
/// Entities that a digest names.
const NAMED: usize = 12;

/// Whether the model has the tool that pages results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handles {
    /// It has: a handle says what to ask for.
    Told,
    /// It has not.
    Useless,
}

/// The entry with its long results as digests.
pub fn digested(entry: Entry, handles: Handles) -> Entry {
    each_result(entry, |call| {
        let content = &call.observation().content;
        (tokens(content) > DIGEST).then(|| format!("{}{}", digest(content), handle(call, handles)))
    })
}

/// The entry with each result as one line.
pub fn masked(entry: Entry, handles: Handles) -> Entry {
    each_result(entry, |call| {
        let content = &call.observation().content;
        (content.chars().count() > RESULT).then(|| masked_text(call, RESULT, handles))
    })
}

/// Shortens results to so many characters.
pub fn shorten(entry: &mut Entry, most: usize, handles: Handles) {
    let whole = std::mem::replace(entry, Entry::Note { text: String::new() });
    *entry = each_result(whole, |call| {
        let is_long = call.observation().content.chars().count() > most;
        is_long.then(|| masked_text(call, most, handles))
    });
}

fn masked_text(call: &AnsweredCall, most: usize, handles: Handles) -> String {
    let content = &call.observation().content;
    format!("{}{}", cut(&one_line(content), most), handle(call, handles))
}

/// How it begins and ends, and what it names in between.
fn digest(content: &str) -> String {
    let beginning: String = content.chars().take(BEGINNING).collect();
    let rest = content.get(beginning.len()..).unwrap_or("");
    let skipped = rest.chars().count().saturating_sub(END);
    let end: String = rest.chars().skip(skipped).collect();
    let middle: String = rest.chars().take(skipped).collect();
    let named =
        Rules.entities(&middle).into_iter().take(NAMED).map(|one| cut(&one_line(&one.text), 40));
    let named: Vec<String> = named.collect();
    let told_names =
        if named.is_empty() { String::new() } else { format!(" naming {}", named.join(", ")) };
    format!("{beginning}\n[... {skipped} characters{told_names} ...]\n{end}")
}

/// What to ask for, beside the length of the whole.
fn handle(call: &AnsweredCall, handles: Handles) -> String {
    let observation = call.observation();
    let length = observation.content.chars().count();
    let name = match (&observation.artifact, handles) {
        (_, Handles::Useless) => return format!(" [masked: {length} characters in all]"),
        (Some(artifact), Handles::Told) => artifact.id.to_string(),
        (None, Handles::Told) => observation.tool_call_id.to_string(),
    };
    format!(" [masked: {length} characters in all; expand {{\"artifact\": \"{name}\"}} shows them]")
}

/// Replaces the content of results; the pairs stay whole.
fn each_result(entry: Entry, shorter: impl Fn(&AnsweredCall) -> Option<String>) -> Entry {
    let Entry::Turn(mut turn) = entry else { return entry };
    for call in &mut turn.calls {
        if let Some(content) = shorter(call) {
            let mut observation = call.observation().clone();
            observation.content = content;
            let (tool, arguments) = (call.tool().to_owned(), call.arguments().clone());
            *call = AnsweredCall::new(tool, arguments, call.opaque().cloned(), observation);
        }
    }
    Entry::Turn(turn)
}

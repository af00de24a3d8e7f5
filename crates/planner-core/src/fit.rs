//! Makes a conversation fit. Older pieces become lines of the state summary, then long results are
//! masked, then words are cut, and at the very last whole pieces go. Calls and results stay pairs.
//!
//! Pieces leave in steps of several, so that the head of the request stays the same from one turn
//! to the next and a provider's cache can use it.

use proto::transcript::{AnsweredCall, Entry, TurnEntry};
use serde_json::{Map, Value};

use crate::summary::{self, cut, one_line};

/// Turn groups that stay verbatim.
pub const VERBATIM_GROUPS: usize = 3;
/// Pieces that leave together.
const STEP: usize = 4;
/// Characters per token of ASCII text, as a cautious guess for prose and JSON.
const CHARS_PER_TOKEN: usize = 4;
/// Tokens around an entry or a call on the wire.
const FRAME: usize = 8;
/// Characters that a masked result keeps at first, and then.
const MASKED: [usize; 2] = [1600, 200];
/// Characters below which words are not cut further.
const SHORTEST: usize = 16;
/// The part of the room that summary lines may take.
const SUMMARY_PART: usize = 4;

/// One entry of the conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// What the model is shown.
    pub entry: Entry,
    /// Whether it stays as long as anything can: words of the active run.
    pub pinned: bool,
}

/// A conversation that fits, and lines for what was left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fitted {
    /// The entries, oldest first.
    pub entries: Vec<Entry>,
    /// One line per action or word that was left out, oldest first.
    pub lines: Vec<String>,
}

/// A guess at the tokens of a text: other scripts than ASCII take about one per character.
pub fn tokens(text: &str) -> usize {
    let all = text.chars().count();
    let ascii = text.chars().filter(char::is_ascii).count();
    ascii.div_ceil(CHARS_PER_TOKEN).saturating_add(all.saturating_sub(ascii))
}

/// A guess at the tokens of entries.
pub fn entries_tokens<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> usize {
    entries.into_iter().map(entry_tokens).sum()
}

/// Makes the pieces fit into `limit` tokens, summary lines included. Nothing is left out while all
/// of it fits; the newest piece stays, so what cannot be cut may still be too large.
pub fn fit(mut pieces: Vec<Piece>, limit: usize) -> Fitted {
    let mut lines = Lines::new(limit / SUMMARY_PART);
    while room_taken(&pieces, &lines) > limit {
        let leaving = may_leave(&pieces);
        if leaving.is_empty() {
            break;
        }
        for index in leaving.into_iter().take(STEP).rev() {
            lines.defer(pieces.remove(index).entry);
        }
        lines.settle();
    }
    for most in MASKED {
        if room_taken(&pieces, &lines) > limit {
            for piece in &mut pieces {
                mask(&mut piece.entry, most);
            }
        }
    }
    let room = limit.saturating_sub(lines.tokens());
    shrink(&mut pieces, room);
    while pieces.len() > 1 && total(&pieces) > room {
        pieces.remove(0);
    }
    Fitted { entries: pieces.into_iter().map(|piece| piece.entry).collect(), lines: lines.kept() }
}

fn total(pieces: &[Piece]) -> usize {
    pieces.iter().map(|piece| entry_tokens(&piece.entry)).sum()
}

fn room_taken(pieces: &[Piece], lines: &Lines) -> usize {
    total(pieces).saturating_add(lines.tokens())
}

/// Pieces before the verbatim groups that are not pinned, oldest first.
fn may_leave(pieces: &[Piece]) -> Vec<usize> {
    let groups = pieces.iter().enumerate().filter(|(_, p)| matches!(p.entry, Entry::Turn(_)));
    let first_kept = groups.map(|(at, _)| at).rev().take(VERBATIM_GROUPS).last();
    let end = first_kept.unwrap_or(pieces.len());
    (0..end).filter(|at| pieces.get(*at).is_some_and(|piece| !piece.pinned)).collect()
}

/// Summary lines within a budget: the newest stay, the others are counted.
struct Lines {
    all: Vec<String>,
    deferred: Vec<Entry>,
    left_out: usize,
    budget: usize,
}

impl Lines {
    fn new(budget: usize) -> Self {
        Self { all: Vec::new(), deferred: Vec::new(), left_out: 0, budget }
    }

    /// Takes an entry of the step that leaves now, newest first.
    fn defer(&mut self, entry: Entry) {
        self.deferred.push(entry);
    }

    fn settle(&mut self) {
        let entries = std::mem::take(&mut self.deferred);
        self.all.extend(entries.into_iter().rev().flat_map(|entry| entry_lines(&entry)));
        while !self.all.is_empty() && self.tokens() > self.budget {
            self.all.remove(0);
            self.left_out = self.left_out.saturating_add(1);
        }
    }

    fn tokens(&self) -> usize {
        if self.all.is_empty() && self.left_out == 0 {
            return 0;
        }
        let lines: usize = self.all.iter().map(|line| tokens(line).saturating_add(1)).sum();
        lines.saturating_add(FRAME.saturating_mul(4))
    }

    fn kept(self) -> Vec<String> {
        let count = format!("- {} earlier lines are left out", self.left_out);
        let first = (self.left_out > 0).then_some(count);
        first.into_iter().chain(self.all).collect()
    }
}

fn entry_lines(entry: &Entry) -> Vec<String> {
    let said =
        |who: &str, text: &str| format!("- {who}: {}", cut(&one_line(text), summary::RESULT));
    match entry {
        Entry::User { text } => vec![said("user", text)],
        Entry::Note { text } => vec![said("note", text)],
        Entry::Turn(turn) if turn.calls.is_empty() => {
            // Words of a `contract` reply that was cut are known as reasoning only.
            let words = if turn.text.is_empty() { &turn.reasoning } else { &turn.text };
            vec![said("you", words)]
        }
        Entry::Turn(turn) => turn.calls.iter().map(call_line).collect(),
    }
}

fn call_line(call: &AnsweredCall) -> String {
    summary::action_line(call.tool(), call.arguments(), call.observation())
}

fn entry_tokens(entry: &Entry) -> usize {
    let words = match entry {
        Entry::User { text } | Entry::Note { text } => tokens(text),
        Entry::Turn(turn) => turn_tokens(turn),
    };
    words.saturating_add(FRAME)
}

fn turn_tokens(turn: &TurnEntry) -> usize {
    let calls: usize = turn.calls.iter().map(call_tokens).sum();
    let words = tokens(&turn.text).saturating_add(tokens(&turn.reasoning));
    words.saturating_add(calls).saturating_add(opaque_tokens(turn.opaque.as_ref()))
}

fn call_tokens(call: &AnsweredCall) -> usize {
    let parts = [
        tokens(&arguments_text(call)),
        tokens(&call.observation().content),
        tokens(call.tool()),
        opaque_tokens(call.opaque()),
        FRAME,
    ];
    parts.into_iter().sum()
}

fn opaque_tokens(opaque: Option<&Value>) -> usize {
    opaque.map_or(0, |opaque| tokens(&opaque.to_string()))
}

fn arguments_text(call: &AnsweredCall) -> String {
    Value::Object(call.arguments().clone()).to_string()
}

/// Shortens the results of a turn group; the pairs stay whole.
fn mask(entry: &mut Entry, most: usize) {
    let Entry::Turn(turn) = entry else { return };
    for call in &mut turn.calls {
        let length = call.observation().content.chars().count();
        if length > most {
            let mut observation = call.observation().clone();
            let kept = cut(&observation.content, most);
            observation.content = format!("{kept} [masked: {length} characters in all]");
            *call = AnsweredCall::new(
                call.tool().to_owned(),
                call.arguments().clone(),
                call.opaque().cloned(),
                observation,
            );
        }
    }
}

/// The last resort: cuts the longest words, however new, until the pieces fit.
fn shrink(pieces: &mut [Piece], limit: usize) {
    let mut most = limit.saturating_mul(CHARS_PER_TOKEN);
    while total(pieces) > limit && most > SHORTEST {
        most /= 2;
        for piece in &mut *pieces {
            cut_words(&mut piece.entry, most);
        }
    }
}

fn cut_words(entry: &mut Entry, most: usize) {
    match entry {
        Entry::User { text } | Entry::Note { text } => *text = cut(text, most),
        Entry::Turn(turn) => {
            turn.text = cut(&turn.text, most);
            turn.reasoning = cut(&turn.reasoning, most);
            turn.calls.iter_mut().for_each(|call| cut_call(call, most));
        }
    }
}

/// Long arguments stay an object, which is all that a provider asks of a past call.
fn cut_call(call: &mut AnsweredCall, most: usize) {
    let text = arguments_text(call);
    let mut arguments = call.arguments().clone();
    if text.chars().count() > most.saturating_add(SHORTEST) && !arguments.contains_key(CUT) {
        arguments = Map::from_iter([(CUT.to_owned(), Value::String(cut(&text, most)))]);
    } else if let Some(Value::String(text)) = arguments.get_mut(CUT) {
        *text = cut(text, most);
    }
    let mut observation = call.observation().clone();
    observation.content = cut(&observation.content, most);
    *call =
        AnsweredCall::new(call.tool().to_owned(), arguments, call.opaque().cloned(), observation);
}

/// The field that stands for arguments that were cut.
const CUT: &str = "cut_arguments";

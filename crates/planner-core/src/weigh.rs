//! How much each piece of a conversation matters: what memory-core scores of it, without an embedder,
//! so that the answer follows from the journal alone.

use memory_core::entity::{Extract, Rules};
use memory_core::fragment::Origin;
use memory_core::importance::{Scoring, Session, Turn};
use memory_core::kind::{Kind, classify};
use memory_core::text::head;
use proto::transcript::{AnsweredCall, Entry, TurnEntry};

/// Bytes of each result that are looked at.
const LOOKED_AT: usize = 4096;
/// The tools whose results come from memory: they are in memory already.
const FROM_MEMORY: [&str; 2] = ["recall", "expand"];

/// Scores pieces in their order.
pub struct Weigher {
    session: Session,
}

impl Default for Weigher {
    fn default() -> Self {
        Self { session: Session::new(Scoring::default()) }
    }
}

impl Weigher {
    /// The importance of the next piece. Pinned words have none in the conversation: they are told at
    /// the head of the request, whatever else there is room for.
    pub fn importance(&mut self, entry: &Entry, tokens: usize) -> f64 {
        let (text, kind) = words_and_kind(entry);
        let entities = Rules.entities(&text);
        let turn =
            Turn { text: &text, kind, tokens, entities: &entities, vector: None, nearest: None };
        let told = self.session.score(turn);
        let is_told = kind.is_pinned() && matches!(entry, Entry::User { .. });
        if is_told { 0.0 } else { told.score }
    }
}

/// What a piece says, and what it is.
pub fn words_and_kind(entry: &Entry) -> (String, Kind) {
    match entry {
        Entry::User { text } => (text.clone(), classify(text, &Origin::User)),
        Entry::Note { text } => (text.clone(), Kind::Talk),
        Entry::Turn(turn) => of_turn(turn),
    }
}

fn of_turn(turn: &TurnEntry) -> (String, Kind) {
    let mut text = turn.text.clone();
    for call in &turn.calls {
        text.push('\n');
        text.push_str(call.tool());
        if !is_recalled(call) {
            text.push_str(": ");
            text.push_str(head(&call.observation().content, LOOKED_AT));
        }
    }
    let warns = turn.calls.iter().any(|call| warning(call).is_some());
    let kind = if warns { Kind::Warning } else { classify(&turn.text, &Origin::Model) };
    (text, kind)
}

/// Whether a result came out of memory: nothing is taken from it a second time.
pub fn is_recalled(call: &AnsweredCall) -> bool {
    FROM_MEMORY.contains(&call.tool())
}

/// The line by which a tool warns.
pub fn warning(call: &AnsweredCall) -> Option<&str> {
    let origin = Origin::Tool { tool: call.tool().to_owned() };
    let content = head(&call.observation().content, LOOKED_AT);
    if is_recalled(call) || classify(content, &origin) != Kind::Warning {
        return None;
    }
    content.lines().find(|line| classify(line, &origin) == Kind::Warning)
}

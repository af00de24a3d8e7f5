//! Makes a conversation fit, in turn groups that stay whole. What is old and not important becomes
//! shorter: long results as digests, then as one line, then the whole group as lines of the state
//! summary. Only if that is not enough words are cut, and at the very last whole pieces go. Calls and
//! results stay pairs throughout.
//!
//! Old groups are looked at again only when the limit is reached, and then down to a target well below
//! it ([`memory_core::window`]), so that requests keep their beginnings and a provider's cache can use
//! them. No model is asked for any of it, so nothing here can fail or be late.

use memory_core::window::{Group, Place, Room as Window, places};
use proto::fact::Estimator;
use proto::transcript::{AnsweredCall, Entry, TurnEntry};
use serde_json::{Map, Value};
use token_count::{by_characters, by_encoding};

use crate::digest::{self, Handles};
use crate::standing::{self, Standing};
use crate::summary::{self, cut, one_line};
use crate::weigh::Weigher;

pub use memory_core::window::NEWEST as VERBATIM_GROUPS;

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
    /// The run that it belongs to.
    pub run: u32,
}

/// How much room the conversation has, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// At most.
    pub limit: usize,
    /// After a compaction.
    pub target: usize,
}

/// A conversation that fits, and what is told of the rest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fitted {
    /// The entries, oldest first.
    pub entries: Vec<Entry>,
    /// One line per action or word that was left out, oldest first.
    pub lines: Vec<String>,
    /// What has to stay of what was left out.
    pub standing: Standing,
    /// How often old groups were looked at.
    pub compactions: usize,
}

/// The tokens of a text.
pub fn tokens(by: Estimator, text: &str) -> usize {
    match by {
        Estimator::Characters => by_characters(text),
        Estimator::Encoding => by_encoding(text),
    }
}

/// The tokens of entries.
pub fn entries_tokens<'a>(by: Estimator, entries: impl IntoIterator<Item = &'a Entry>) -> usize {
    entries.into_iter().map(|entry| entry_tokens(by, entry)).sum()
}

/// What no encoding of the entry exceeds.
pub(crate) fn entry_at_most(entry: &Entry) -> usize {
    told_tokens(entry, &token_count::at_most)
}

/// The tokens of an entry.
pub(crate) fn entry_tokens(by: Estimator, entry: &Entry) -> usize {
    told_tokens(entry, &|text| tokens(by, text))
}

/// How the tokens of a text are told.
type Tell<'t> = &'t dyn Fn(&str) -> usize;

/// Makes the pieces fit, summary lines included. Nothing is left out while all of it fits; the newest
/// piece stays, so what cannot be cut may still be too large.
pub fn fit(pieces: Vec<Piece>, room: Room, (handles, by): (Handles, Estimator)) -> Fitted {
    let sizes: Vec<usize> = pieces.iter().map(|piece| entry_tokens(by, &piece.entry)).collect();
    if sizes.iter().sum::<usize>() <= room.limit {
        let entries = pieces.into_iter().map(|piece| piece.entry).collect();
        return Fitted { entries, ..Fitted::default() };
    }
    let groups = groups(&pieces, &sizes, (handles, by));
    let lines = room.limit / SUMMARY_PART;
    let threshold = memory_core::importance::Scoring::default().threshold;
    let window = Window { limit: room.limit, target: room.target, lines, threshold };
    let (places, compactions) = places(&groups, window);
    let standing = standing::of(&pieces, &places, (room.limit, by));
    let mut lines = Lines::new(lines, by);
    let mut kept = Vec::with_capacity(pieces.len());
    for (piece, place) in pieces.into_iter().zip(places) {
        match place {
            Place::Verbatim => kept.push(piece),
            Place::Digest => {
                kept.push(Piece { entry: digest::digested(piece.entry, handles), ..piece });
            }
            Place::Masked => {
                kept.push(Piece { entry: digest::masked(piece.entry, handles), ..piece });
            }
            Place::Line => lines.add(&piece.entry),
        }
    }
    let fixed = standing.tokens(by);
    let entries = squeezed(kept, &lines, room.limit.saturating_sub(fixed), handles);
    Fitted { entries, lines: lines.kept(), standing, compactions }
}

fn groups(pieces: &[Piece], sizes: &[usize], (handles, by): (Handles, Estimator)) -> Vec<Group> {
    let mut weigher = Weigher::default();
    let with_sizes = pieces.iter().zip(sizes);
    let group = |(piece, size): (&Piece, &usize)| {
        let is_turn = matches!(piece.entry, Entry::Turn(_));
        let shorter = |entry: Entry| entry_tokens(by, &entry).min(*size);
        let told = entry_lines(&piece.entry);
        Group {
            verbatim: *size,
            digest: if is_turn {
                shorter(digest::digested(piece.entry.clone(), handles))
            } else {
                *size
            },
            masked: if is_turn {
                shorter(digest::masked(piece.entry.clone(), handles))
            } else {
                *size
            },
            line: told.iter().map(|line| tokens(by, line).saturating_add(1)).sum(),
            importance: weigher.importance(&piece.entry, *size),
            is_turn,
            is_words: matches!(piece.entry, Entry::User { .. }),
            run: piece.run,
        }
    };
    with_sizes.map(group).collect()
}

/// What is left to do when the newest groups and the words of the run are larger than the room.
fn squeezed(mut pieces: Vec<Piece>, lines: &Lines, limit: usize, handles: Handles) -> Vec<Entry> {
    for most in MASKED {
        if room_taken(&pieces, lines) > limit {
            for piece in &mut pieces {
                digest::shorten(&mut piece.entry, most, handles);
            }
        }
    }
    let room = limit.saturating_sub(lines.tokens());
    shrink(&mut pieces, room, lines.by);
    while pieces.len() > 1 && total(&pieces, lines.by) > room {
        pieces.remove(0);
    }
    pieces.into_iter().map(|piece| piece.entry).collect()
}

fn total(pieces: &[Piece], by: Estimator) -> usize {
    entries_tokens(by, pieces.iter().map(|piece| &piece.entry))
}

fn room_taken(pieces: &[Piece], lines: &Lines) -> usize {
    total(pieces, lines.by).saturating_add(lines.tokens())
}

/// Summary lines within a budget: the newest stay, the others are counted.
struct Lines {
    all: Vec<String>,
    left_out: usize,
    budget: usize,
    by: Estimator,
}

impl Lines {
    fn new(budget: usize, by: Estimator) -> Self {
        Self { all: Vec::new(), left_out: 0, budget, by }
    }

    fn add(&mut self, entry: &Entry) {
        self.all.extend(entry_lines(entry));
        while !self.all.is_empty() && self.tokens() > self.budget {
            self.all.remove(0);
            self.left_out = self.left_out.saturating_add(1);
        }
    }

    fn tokens(&self) -> usize {
        if self.all.is_empty() && self.left_out == 0 {
            return 0;
        }
        let line_tokens = |line: &String| tokens(self.by, line).saturating_add(1);
        let lines: usize = self.all.iter().map(line_tokens).sum();
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

fn told_tokens(entry: &Entry, tell: Tell<'_>) -> usize {
    let words = match entry {
        Entry::User { text } | Entry::Note { text } => tell(text),
        Entry::Turn(turn) => turn_tokens(turn, tell),
    };
    words.saturating_add(FRAME)
}

fn turn_tokens(turn: &TurnEntry, tell: Tell<'_>) -> usize {
    let calls: usize = turn.calls.iter().map(|call| call_tokens(call, tell)).sum();
    let words = tell(&turn.text).saturating_add(tell(&turn.reasoning));
    words.saturating_add(calls).saturating_add(opaque_tokens(turn.opaque.as_ref(), tell))
}

fn call_tokens(call: &AnsweredCall, tell: Tell<'_>) -> usize {
    let parts = [
        tell(&arguments_text(call)),
        tell(&call.observation().content),
        tell(call.tool()),
        opaque_tokens(call.opaque(), tell),
        FRAME,
    ];
    parts.into_iter().sum()
}

fn opaque_tokens(opaque: Option<&Value>, tell: Tell<'_>) -> usize {
    opaque.map_or(0, |opaque| tell(&opaque.to_string()))
}

fn arguments_text(call: &AnsweredCall) -> String {
    Value::Object(call.arguments().clone()).to_string()
}

/// The last resort: cuts the longest words, however new, until the pieces fit.
fn shrink(pieces: &mut [Piece], limit: usize, by: Estimator) {
    let mut most = limit.saturating_mul(token_count::CHARACTERS);
    while total(pieces, by) > limit && most > SHORTEST {
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

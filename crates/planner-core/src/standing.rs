//! What has to stay of groups that were left out: the user's instructions, constraints, tasks and where
//! secrets lie, in their words; wording in quotation marks; warnings of tools that nobody has taken up;
//! and facts, the newest value of each.

use std::collections::BTreeMap;

use memory_core::fact::stated;
use memory_core::kind::quotes_kept;
use memory_core::text::{normal, terms};
use memory_core::window::Place;
use proto::fact::Estimator;
use proto::transcript::Entry;

use crate::fit::{Piece, tokens};
use crate::summary::{cut, one_line};
use crate::weigh::{warning, words_and_kind};

/// The part of the room that pinned words may take, and that of facts.
const PINNED_PART: usize = 8;
const FACTS_PART: usize = 16;
/// Characters of pinned words, and of a warning.
const LONGEST: usize = 2000;
const WARNING: usize = 200;
/// Words that a later text shares with a warning when it takes it up.
const TAKEN_UP: usize = 2;

/// What has to stay.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Standing {
    /// Instructions, constraints, tasks, places of secrets, quotations, warnings; oldest first.
    pub pinned: Vec<String>,
    /// Facts, oldest first.
    pub facts: Vec<String>,
}

impl Standing {
    /// What it takes.
    pub fn tokens(&self, by: Estimator) -> usize {
        let lines = self.pinned.iter().chain(&self.facts);
        let taken: usize = lines.map(|line| tokens(by, line).saturating_add(1)).sum();
        if taken == 0 { 0 } else { taken.saturating_add(64) }
    }
}

/// What stands of the pieces that became lines.
pub fn of(pieces: &[Piece], places: &[Place], (limit, by): (usize, Estimator)) -> Standing {
    let is_line = |at: usize| places.get(at) == Some(&Place::Line);
    let mut pinned = Vec::new();
    for (at, piece) in pieces.iter().enumerate().filter(|(at, _)| is_line(*at)) {
        let later = pieces.get(at.saturating_add(1)..).unwrap_or_default();
        pinned.extend(pinned_of(&piece.entry, later));
    }
    Standing {
        pinned: newest_within(pinned, limit / PINNED_PART, by),
        facts: newest_within(facts(pieces, is_line), limit / FACTS_PART, by),
    }
}

fn pinned_of(entry: &Entry, later: &[Piece]) -> Vec<String> {
    match entry {
        Entry::User { text } => {
            let (_, kind) = words_and_kind(entry);
            if kind.is_pinned() {
                return vec![format!("- {}: {}", kind.as_str(), cut(&one_line(text), LONGEST))];
            }
            let quoted = quotes_kept(text);
            quoted.into_iter().map(|quote| format!("- quoted: \"{quote}\"")).collect()
        }
        Entry::Note { .. } => Vec::new(),
        Entry::Turn(turn) => {
            let warned = turn.calls.iter().filter_map(|call| Some((call.tool(), warning(call)?)));
            let open = warned.filter(|(_, line)| !is_taken_up(line, later));
            open.map(|(tool, line)| {
                format!("- warning of {tool}: {}", cut(&one_line(line), WARNING))
            })
            .collect()
        }
    }
}

/// Whether somebody speaks of what a warning says.
fn is_taken_up(warning: &str, later: &[Piece]) -> bool {
    let about = terms(warning);
    later.iter().any(|piece| {
        let said = match &piece.entry {
            Entry::User { text } | Entry::Note { text } => terms(text),
            Entry::Turn(turn) => terms(&turn.text),
        };
        about.iter().filter(|term| said.contains(term)).count() >= TAKEN_UP
    })
}

/// The newest value of each subject and attribute that a person stated, where it was left out.
fn facts(pieces: &[Piece], is_line: impl Fn(usize) -> bool) -> Vec<String> {
    let mut newest = BTreeMap::new();
    for (at, piece) in pieces.iter().enumerate() {
        let Entry::User { text } = &piece.entry else { continue };
        for fact in stated(text) {
            let line = format!("- {} {}: {}", fact.subject, fact.attribute, fact.value);
            newest.insert((normal(&fact.subject), normal(&fact.attribute)), (at, line));
        }
    }
    let mut facts: Vec<(usize, String)> =
        newest.into_values().filter(|(at, _)| is_line(*at)).collect();
    facts.sort();
    facts.into_iter().map(|(_, line)| line).collect()
}

/// The newest lines within a quota, and how many are left out.
fn newest_within(lines: Vec<String>, quota: usize, by: Estimator) -> Vec<String> {
    let mut taken = 0_usize;
    let all = lines.len();
    let fits = |line: &String| {
        taken = taken.saturating_add(tokens(by, line)).saturating_add(1);
        taken <= quota
    };
    let mut kept: Vec<String> = lines.into_iter().rev().take_while(fits).collect();
    let left_out = all.saturating_sub(kept.len());
    if left_out > 0 {
        kept.push(format!("- {left_out} older ones are left out"));
    }
    kept.reverse();
    kept
}

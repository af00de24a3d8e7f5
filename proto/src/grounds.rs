//! Whether a decision rests on records that are there.
//!
//! A fact says how far its planner had folded. Between that record and the fact lie only records that
//! are no part of the chain, for the chain was fenced by what the planner knew of it. So whoever reads
//! in order can tell: where no record of the thread lies at the number that was folded last, the
//! journal had lost its tail before the fact landed, and what it was decided from never counted.

use serde::{Deserialize, Serialize};

use crate::fact::Fact;
use crate::ids::Sequence;

/// Records remembered beside the chain; of more the oldest are taken for there.
const MOST: usize = 4096;

/// The records since the newest one of the chain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grounds {
    /// Above this number all records are known; nothing is known before the first record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    above: Option<Sequence>,
    /// Those that lie there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    there: Vec<Sequence>,
}

impl Grounds {
    /// For a reader that knows nothing of what lies up to this record.
    pub fn above(sequence: Sequence) -> Self {
        Self { above: Some(sequence), there: Vec::new() }
    }

    /// Whether a fact that lies at `at`, behind all records noted so far, was decided from what is not
    /// there.
    pub fn is_void(&self, fact: &Fact, at: Sequence) -> bool {
        if fact.is_void(at) {
            return true;
        }
        let (Some(seen), Some(above)) = (fact.folded(), self.above) else { return false };
        let is_there = |sequence| self.there.binary_search(&sequence).is_ok();
        // An end that leaves an input unread names the number before that input, whatever lies there.
        let leaves_unread = matches!(fact, Fact::RunFinished(_)) && is_there(seen.next());
        seen > above && !is_there(seen) && !leaves_unread
    }

    /// A record lies here; `plan` says whether it is one of the chain.
    pub fn note(&mut self, sequence: Sequence, plan: bool) {
        if plan {
            *self = Self::above(sequence);
            return;
        }
        self.above.get_or_insert_with(|| Sequence(sequence.0.saturating_sub(1)));
        if self.there.len() == MOST {
            self.above = Some(self.there.remove(0));
        }
        self.there.push(sequence);
    }
}

//! What is asked, and what is found.

use std::collections::BTreeSet;
use std::sync::Arc;

use memory_core::fragment::Fragment;
use memory_core::kind::Kind;
use memory_core::ranking::{Ranked, Weights};
use proto::agent::Edition;
use proto::ids::ThreadId;
use proto::time::Timestamp;

use super::Kept;

/// The most fragments that one question is answered with.
pub const MOST_HITS: usize = 100;

/// A question.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// The words.
    pub text: String,
    /// What they mean, in the store's space.
    pub vector: Option<Arc<[f32]>>,
    /// How many fragments are wanted.
    pub k: usize,
    /// What may be found.
    pub filter: Filter,
    /// The time of the question.
    pub now: Timestamp,
    /// How what is found is put in order.
    pub weights: Weights,
}

impl Query {
    /// A question for `k` fragments by words.
    pub fn words(text: impl Into<String>, k: usize, now: Timestamp) -> Self {
        Self {
            text: text.into(),
            vector: None,
            k,
            filter: Filter::default(),
            now,
            weights: Weights::default(),
        }
    }

    /// The time that it is about.
    pub fn about(&self) -> Timestamp {
        self.filter.as_of.unwrap_or(self.now)
    }

    /// Whether a fragment may be an answer: it fits the filter, and holds at the time that the
    /// question is about.
    pub fn admits(&self, kept: &Kept) -> bool {
        self.filter.admits(kept) && kept.holds_at(self.about())
    }
}

/// What may be found. Passages are found in the editions that are named, never in others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only these kinds; all where it is empty.
    pub kinds: BTreeSet<Kind>,
    /// Only this thread.
    pub thread: Option<ThreadId>,
    /// Nothing of this thread: what is in front of the model already.
    pub without: Option<ThreadId>,
    /// Only what was known at this time.
    pub as_of: Option<Timestamp>,
    /// The editions in which passages are found.
    pub editions: Vec<Edition>,
    /// Whether passages of every edition are found; for people who look after a store.
    pub all_editions: bool,
}

impl Filter {
    /// Whether a fragment fits, whenever it holds.
    pub fn admits(&self, kept: &Kept) -> bool {
        let Fragment { id, kind, at, .. } = &kept.fragment;
        self.admits_one(id.thread, *kind, *at, kept.edition().as_ref())
    }

    /// The same for whoever has no more of it at hand.
    pub fn admits_one(
        &self,
        thread: ThreadId,
        kind: Kind,
        at: Timestamp,
        edition: Option<&Edition>,
    ) -> bool {
        let is_served = |edition: &Edition| self.all_editions || self.editions.contains(edition);
        edition.is_none_or(is_served)
            && (self.kinds.is_empty() || self.kinds.contains(&kind))
            && self.thread.is_none_or(|only| thread == only)
            && self.without.is_none_or(|not| thread != not)
            && self.as_of.is_none_or(|as_of| at <= as_of)
    }
}

/// A fragment that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// It, without its vector.
    pub kept: Kept,
    /// How its score came about.
    pub ranked: Ranked,
}

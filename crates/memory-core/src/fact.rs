//! Facts: a subject has an attribute with a value, from a time on, until another value takes its place.
//!
//! A fact takes the place of another only if subject and attribute are the same; anything else stands
//! beside it. Nothing is deleted: the old value stays, with the time from which it no longer held, so
//! a question about an earlier time has its answer.

use std::collections::BTreeMap;

use proto::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::fragment::FragmentId;
use crate::text::normal;

/// Facts that a thread keeps; beyond it the oldest that no longer hold go first.
pub const MAX_FACTS: usize = 512;

/// One fact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fact {
    /// Its name: the fragment it is from and its place among that fragment's facts.
    pub id: FactId,
    /// What it is about.
    pub subject: String,
    /// Which property.
    pub attribute: String,
    /// The property's value, verbatim.
    pub value: String,
    /// From when it holds.
    pub valid_from: Timestamp,
    /// From when it no longer holds: another value took its place, or it ran out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalid_from: Option<Timestamp>,
    /// The fact whose place it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supersedes: Option<FactId>,
    /// The fact that took its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<FactId>,
}

/// A fact's name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FactId {
    /// The fragment that states it: its source.
    pub source: FragmentId,
    /// Its place among that fragment's facts, from 0.
    pub number: u32,
}

impl Fact {
    /// Whether it holds at that time.
    pub fn holds_at(&self, at: Timestamp) -> bool {
        self.valid_from <= at && self.invalid_from.is_none_or(|until| at < until)
    }

    /// What another fact must share to take its place.
    pub fn key(&self) -> (String, String) {
        (normal(&self.subject), normal(&self.attribute))
    }

    /// One line for the model.
    pub fn line(&self) -> String {
        format!("{} {}: {}", self.subject, self.attribute, self.value)
    }
}

/// A fact as it was said, before it has a place in the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stated {
    /// What it is about.
    pub subject: String,
    /// Which property.
    pub attribute: String,
    /// The value.
    pub value: String,
}

/// The facts of a session, each key with its history, oldest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ledger {
    facts: BTreeMap<(String, String), Vec<Fact>>,
}

impl Ledger {
    /// A ledger of facts that were kept, in the order they were stated.
    pub fn of(facts: impl IntoIterator<Item = Fact>) -> Self {
        let mut ledger = Self::default();
        for fact in facts {
            ledger.facts.entry(fact.key()).or_default().push(fact);
        }
        ledger
    }

    /// Takes a fact in. The same value again changes nothing, and answers with nothing; another value
    /// takes the place of the one that held. `expires` is when it stops holding by itself.
    pub fn state(
        &mut self,
        stated: Stated,
        source: FactId,
        at: Timestamp,
        expires: Option<Timestamp>,
    ) -> Option<Fact> {
        let mut fact = Fact {
            id: source,
            subject: stated.subject,
            attribute: stated.attribute,
            value: stated.value,
            valid_from: at,
            invalid_from: expires,
            supersedes: None,
            superseded_by: None,
        };
        let history = self.facts.entry(fact.key()).or_default();
        if let Some(current) = history.last_mut().filter(|current| current.holds_at(at)) {
            if normal(&current.value) == normal(&fact.value) {
                return None;
            }
            current.invalid_from = Some(at);
            current.superseded_by = Some(fact.id.clone());
            fact.supersedes = Some(current.id.clone());
        }
        history.push(fact.clone());
        self.bound();
        Some(fact)
    }

    /// The facts that hold at that time, by subject and attribute.
    pub fn as_of(&self, at: Timestamp) -> impl Iterator<Item = &Fact> {
        let held = move |history: &'_ Vec<Fact>| history.iter().rev().position(|f| f.holds_at(at));
        self.facts.values().filter_map(move |history| {
            held(history).and_then(|back| history.iter().rev().nth(back))
        })
    }

    /// Every fact, the old values too.
    pub fn all(&self) -> impl Iterator<Item = &Fact> {
        self.facts.values().flatten()
    }

    fn bound(&mut self) {
        while self.facts.values().map(Vec::len).sum::<usize>() > MAX_FACTS {
            let ended = |fact: &Fact| (fact.invalid_from.is_none(), fact.valid_from);
            let oldest = self.facts.iter().filter_map(|(key, history)| {
                history.first().map(|fact| (ended(fact), key.clone()))
            });
            let Some((_, key)) = oldest.min() else { return };
            if let Some(history) = self.facts.get_mut(&key) {
                history.remove(0);
            }
            self.facts.retain(|_, history| !history.is_empty());
        }
    }
}

mod rules;

pub use rules::stated;

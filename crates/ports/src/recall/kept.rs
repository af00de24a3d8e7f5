//! What is kept, and the ids of what no turn group holds.

use std::sync::Arc;

use memory_core::fragment::{Fragment, FragmentId, Origin};
use proto::hash::sha256_hex;
use proto::ids::{ThreadId, ThreadRef, ToolCallId};
use proto::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Access, Edition};

/// Turn numbers from here on are no turn groups: what calls were told to remember.
const CALLS: u64 = 1 << 48;

/// A fragment with what a store knows of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// It.
    pub fragment: Fragment,
    /// From when it holds no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalid_from: Option<Timestamp>,
    /// What took its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<FragmentId>,
    /// What it means, in the store's space. Questions are answered without it.
    #[serde(skip)]
    pub vector: Option<Arc<[f32]>>,
}

impl Kept {
    /// A fragment that holds, by words.
    pub fn new(fragment: Fragment) -> Self {
        Self { fragment, invalid_from: None, superseded_by: None, vector: None }
    }

    /// The same with what it means.
    #[must_use]
    pub fn with_vector(mut self, vector: impl Into<Arc<[f32]>>) -> Self {
        self.vector = Some(vector.into());
        self
    }

    /// Whether it holds at a time.
    pub fn holds_at(&self, at: Timestamp) -> bool {
        self.invalid_from.is_none_or(|until| at < until)
    }

    /// The edition it is from, if it is from a document.
    pub fn edition(&self) -> Option<Edition> {
        match &self.fragment.origin {
            Origin::Document { collection, version, .. } => {
                Some(Edition { collection: collection.clone(), version: version.clone() })
            }
            Origin::User
            | Origin::Model
            | Origin::Tool { .. }
            | Origin::Note
            | Origin::Remembered
            | Origin::Recalled => None,
        }
    }

    /// One that is put again, without what took its place, keeps what was known of that.
    pub fn stay_superseded(&mut self, before: &Self) {
        if self.invalid_from.is_none() && self.superseded_by.is_none() {
            self.invalid_from = before.invalid_from;
            self.superseded_by.clone_from(&before.superseded_by);
        }
    }

    /// What is searched by words: who said it, and what its facts are about, belong to it.
    pub fn searched(&self) -> String {
        let Fragment { origin, text, facts, .. } = &self.fragment;
        let mut parts = Vec::new();
        match origin {
            Origin::Tool { tool } => parts.push(tool.as_str()),
            Origin::Document { document, section, .. } => {
                parts.extend([document.as_str(), section.as_str()]);
            }
            Origin::User | Origin::Model | Origin::Note | Origin::Remembered | Origin::Recalled => {
            }
        }
        parts.push(text);
        for fact in facts {
            parts.extend([fact.subject.as_str(), fact.attribute.as_str()]);
        }
        parts.join("\n")
    }

    /// What or whom it is about.
    pub fn subjects(&self) -> impl Iterator<Item = &str> {
        self.fragment.facts.iter().map(|fact| fact.subject.as_str())
    }
}

/// Thread ids of what no thread said begin at time zero, when there were no threads.
fn beside_threads(name: &str) -> ThreadId {
    let hex = sha256_hex(name.as_bytes());
    let random = hex.get(..20).and_then(|hex| u128::from_str_radix(hex, 16).ok());
    ThreadId::from_parts(0, random.unwrap_or_default())
}

/// Where the parts of a document lie: its part `n` is fragment 0 of turn `n`.
pub fn document_thread(edition: &Edition, document: &str) -> ThreadId {
    beside_threads(&format!("document\n{}\n{}\n{document}", edition.collection, edition.version))
}

/// The id of what somebody told from outside: the same key is the same memory.
pub fn told_id(access: &Access, key: &str) -> FragmentId {
    let thread = beside_threads(&format!("told\n{key}"));
    FragmentId { tenant: access.tenant().clone(), thread, turn: 0, fragment: 0 }
}

/// The id of what a call was told to remember: once for each call, however often it runs.
pub fn call_id(thread: &ThreadRef, call: &ToolCallId) -> FragmentId {
    let number = u64::from_str_radix(call.as_str(), 36).unwrap_or_default();
    FragmentId::new(thread, CALLS.saturating_add(number), 0)
}

/// Not an id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not the id of a memory: expected THREAD/TURN.PART, as `systole memory list` shows it"
)]
pub struct BadId(String);

/// An id as people see it: its tenant is theirs.
pub fn short_id(id: &FragmentId) -> String {
    format!("{}/{}.{}", id.thread, id.turn, id.fragment)
}

/// The id that somebody named.
pub fn parse_id(access: &Access, text: &str) -> Result<FragmentId, BadId> {
    let parsed = || {
        let (thread, place) = text.trim().rsplit_once('/')?;
        // An id in full begins with the tenant.
        let own = format!("{}/", access.tenant());
        let thread = thread.strip_prefix(&own).unwrap_or(thread);
        let (turn, fragment) = place.split_once('.')?;
        Some(FragmentId {
            tenant: access.tenant().clone(),
            thread: thread.parse().ok()?,
            turn: turn.parse().ok()?,
            fragment: fragment.parse().ok()?,
        })
    };
    parsed().ok_or_else(|| BadId(text.chars().take(80).collect()))
}

#[cfg(test)]
mod tests {
    use proto::ids::{Partition, TenantId};

    use super::*;

    fn place() -> ThreadRef {
        let tenant = TenantId::new("acme").unwrap();
        let thread = "01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap();
        ThreadRef { partition: Partition(0), tenant, thread }
    }

    #[test]
    fn an_id_is_read_as_it_is_shown_and_is_always_ones_own() {
        let access = Access::of_thread(&place());
        let id = FragmentId::new(&place(), 7, 2);
        assert_eq!(short_id(&id), "01ARZ3NDEKTSV4RRFFQ69G5FAV/7.2");
        assert_eq!(parse_id(&access, &short_id(&id)), Ok(id.clone()));
        assert_eq!(parse_id(&access, &id.to_string()), Ok(id));
        for bad in [
            "",
            "7.2",
            "x/7.2",
            "globex/01ARZ3NDEKTSV4RRFFQ69G5FAV/7.2",
            "01ARZ3NDEKTSV4RRFFQ69G5FAV/7",
        ] {
            assert!(parse_id(&access, bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_no_turn_holds_lies_beside_the_turns_and_always_at_the_same_place() {
        let call = ToolCallId::new("zzzzzzzzz").unwrap();
        let id = call_id(&place(), &call);
        assert_eq!(id, call_id(&place(), &call));
        assert!(id.turn > CALLS);
        let edition = Edition { collection: "handbook".to_owned(), version: "2".to_owned() };
        // It lies in stores: this text never changes.
        assert_eq!(document_thread(&edition, "a.md").to_string(), "0000000000JN1CX2TM6P9CKK3B");
        assert_ne!(document_thread(&edition, "a.md"), document_thread(&edition, "b.md"));
    }
}

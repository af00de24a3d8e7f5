//! What is forgotten.

use std::fmt;

use memory_core::fragment::FragmentId;
use proto::hash::sha256_hex;
use proto::ids::ThreadId;
use proto::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Edition, Kept};

/// What is to be forgotten.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "forget", rename_all = "snake_case")]
pub enum Scope {
    /// All of the tenant.
    Tenant,
    /// What comes from a thread.
    Thread {
        /// The thread.
        thread: ThreadId,
    },
    /// What states a fact about somebody or something: by the hash of its name, so that a tombstone
    /// tells nobody whom to forget.
    Subject {
        /// [`Scope::subject_hash`] of the name.
        hash: String,
    },
    /// One fragment.
    Fragment {
        /// It.
        id: FragmentId,
    },
    /// A version of a collection.
    Edition {
        /// It.
        #[serde(flatten)]
        edition: Edition,
    },
}

impl Scope {
    /// What is about a subject.
    pub fn subject(name: &str) -> Self {
        Self::Subject { hash: Self::subject_hash(name) }
    }

    /// The hash of a subject's name, whatever its case and the blanks in it.
    pub fn subject_hash(name: &str) -> String {
        sha256_hex(memory_core::text::normal(name).as_bytes())
    }

    /// Whether it covers a fragment.
    pub fn covers(&self, kept: &Kept) -> bool {
        match self {
            Self::Tenant => true,
            Self::Thread { thread } => kept.fragment.id.thread == *thread,
            Self::Subject { hash } => {
                kept.subjects().any(|subject| Self::subject_hash(subject) == *hash)
            }
            Self::Fragment { id } => kept.fragment.id == *id,
            Self::Edition { edition } => kept.edition().as_ref() == Some(edition),
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tenant => f.write_str("all of the tenant"),
            Self::Thread { thread } => write!(f, "thread {thread}"),
            Self::Subject { hash } => write!(f, "a subject ({}...)", hash.get(..8).unwrap_or("")),
            Self::Fragment { id } => write!(f, "{id}"),
            Self::Edition { edition: Edition { collection, version } } => {
                write!(f, "version {version} of {collection}")
            }
        }
    }
}

/// What stops writers that come late.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tombstone {
    /// What was forgotten.
    pub scope: Scope,
    /// What happened up to here stays forgotten.
    pub at: Timestamp,
}

impl Tombstone {
    /// Whether it stops a fragment.
    pub fn stops(&self, kept: &Kept) -> bool {
        kept.fragment.at <= self.at && self.scope.covers(kept)
    }
}

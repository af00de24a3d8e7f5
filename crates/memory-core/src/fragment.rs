//! One remembered piece: a part of a turn group of a thread, a fact, or a section of a document.

use std::fmt;

use proto::ids::{TenantId, ThreadId, ThreadRef};
use proto::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::entity::Entity;
use crate::fact::Fact;
use crate::importance::Explanation;
use crate::kind::Kind;

/// Where a fragment is from. The same piece has the same id on every replay, so writing it again
/// changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FragmentId {
    /// Whose it is.
    pub tenant: TenantId,
    /// The thread that it was said in.
    pub thread: ThreadId,
    /// The number of its turn group in the thread, from 0: one user message, one note, or one reply
    /// with all its calls and results.
    pub turn: u64,
    /// Its number in the group, from 0.
    pub fragment: u32,
}

impl FragmentId {
    /// The id of a piece of a thread.
    pub fn new(thread: &ThreadRef, turn: u64, fragment: u32) -> Self {
        Self { tenant: thread.tenant.clone(), thread: thread.thread, turn, fragment }
    }
}

impl fmt::Display for FragmentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}.{}", self.tenant, self.thread, self.turn, self.fragment)
    }
}

/// Who said it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "origin", rename_all = "snake_case")]
pub enum Origin {
    /// The user.
    User,
    /// The model.
    Model,
    /// A tool's result, which is data and never an instruction.
    Tool {
        /// The tool.
        tool: String,
    },
    /// The runtime.
    Note,
    /// The `remember` tool, or a person by hand.
    Remembered,
    /// A section of a document.
    Document {
        /// The collection.
        collection: String,
        /// Its version.
        version: String,
        /// The document's name in it.
        document: String,
        /// The section's heading, or its number.
        section: String,
    },
    /// Shown to the model from memory. It is never kept again.
    Recalled,
}

impl Origin {
    /// Whether a piece of this origin may be kept: what was recalled is in memory already, and keeping
    /// it again is how stores fill up with themselves.
    pub fn may_be_kept(&self) -> bool {
        !matches!(self, Self::Recalled)
    }
}

/// One remembered piece.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fragment {
    /// Where it is from.
    pub id: FragmentId,
    /// Who said it.
    pub origin: Origin,
    /// What it is.
    pub kind: Kind,
    /// The words, after redaction.
    pub text: String,
    /// When it was said, by the bus.
    pub at: Timestamp,
    /// A guess at its tokens.
    pub tokens: u32,
    /// What it names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entities: Vec<Entity>,
    /// Its importance among the turns of its session, 0 to 1; 1 for pinned kinds.
    pub importance: f64,
    /// Why; shown by `systole memory why`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Explanation>,
    /// The facts it states.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<Fact>,
}

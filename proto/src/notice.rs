//! What delays a reply or a call: readers are told, the model never is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::Sequence;

/// Which deadline ran out.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Deadline {
    /// For the first data of a reply.
    FirstToken,
    /// For more of a reply that had begun.
    Idle,
    /// For the whole of a reply, or for a turn with all its requests.
    Total,
    /// For the answer of a call.
    Call,
    /// For the run.
    Run,
}

impl Deadline {
    /// The word in events and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FirstToken => "first_token",
            Self::Idle => "idle",
            Self::Total => "total",
            Self::Call => "call",
            Self::Run => "run",
        }
    }
}

/// What happens after a deadline ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Next {
    /// The same request is made again.
    AskedAgain,
    /// The same request is made of the next model or endpoint.
    AskedElsewhere,
    /// The turn keeps what came, and the run goes on with it.
    TurnSealed,
    /// The call is closed with an observation, and the run goes on.
    CallClosed,
    /// The run ends with what is known so far.
    RunEnds,
}

/// Something that delays a reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "notice", rename_all = "snake_case")]
pub enum Notice {
    /// A deadline ran out.
    DeadlinePassed {
        /// Which.
        deadline: Deadline,
        /// What happens.
        next: Next,
    },
    /// A request waits before it is made.
    Waiting {
        /// Why, for people; empty once it waits no more.
        because: String,
        /// How long at most from now, in milliseconds, when that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at_most_ms: Option<u64>,
    },
    /// The run goes on without long-term memory.
    WithoutMemory {
        /// Why, for people.
        because: String,
    },
}

impl Notice {
    /// A request that waited is made now, or waits no more for another reason.
    pub fn waits_no_more() -> Self {
        Self::Waiting { because: String::new(), at_most_ms: None }
    }
}

/// A notice as it travels beside live text. Losing one is allowed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LiveNotice {
    /// The sequence of the turn's `turn_started`.
    pub started: Sequence,
    /// The turn.
    pub turn: u32,
    /// What.
    #[serde(flatten)]
    pub notice: Notice,
}

//! One message of the journal.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::call::{Start, ToolCall};
use crate::envelope::MIN_READER;
use crate::fact::Fact;
use crate::ids::Sequence;
use crate::input::Input;
use crate::observation::Observation;
use crate::time::Timestamp;

/// What a record says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Record {
    /// From outside.
    Input(Input),
    /// From a planner, for readers.
    Fact(Fact),
    /// From a planner, for workers.
    ToolCall(ToolCall),
    /// From a worker, or from a planner that bars the call.
    Start(Start),
    /// From a worker.
    Observation(Observation),
    /// From the bus: a deadline was reached.
    Tick,
}

impl Record {
    /// The oldest reader that may act on it: who does not know that a state was put in the place of
    /// records would decide from the wrong ones.
    pub fn min_reader(&self) -> u16 {
        match self {
            Self::Fact(Fact::Restored(_) | Fact::Checkpoint(_)) => 2,
            // Who does not know the step takes its reply for the answer.
            Self::Fact(Fact::TurnStarted(turn)) if turn.verify.is_some() => 3,
            Self::Fact(_)
            | Self::Input(_)
            | Self::ToolCall(_)
            | Self::Start(_)
            | Self::Observation(_)
            | Self::Tick => MIN_READER,
        }
    }

    /// The word used for it in logs, metrics and documents.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Input(_) => "input",
            Self::Fact(_) => "fact",
            Self::ToolCall(_) => "tool_call",
            Self::Start(_) => "start",
            Self::Observation(_) => "observation",
            Self::Tick => "tick",
        }
    }
}

/// A record with its place in the journal, decoded.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// Its sequence in the stream.
    pub sequence: Sequence,
    /// When the bus stored it, in server time.
    pub at: Timestamp,
    /// Its nonce.
    pub nonce: crate::ids::Nonce,
    /// What it says.
    pub record: Record,
}

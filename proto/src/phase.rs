//! The states of a run, as readers and metrics see them.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a run is.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// An input waits, no turn has begun.
    Initializing,
    /// Inputs and observations are being taken in.
    Observing,
    /// A model request is open.
    Reasoning,
    /// Calls are open.
    Acting,
    /// Results or the answer are being checked.
    Evaluating,
    /// The run is over.
    Terminating,
}

/// What a run in some phase waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Waiting {
    /// For the first word of the model.
    #[serde(rename = "waiting_for_reasoning")]
    Reasoning,
    /// For the rest of a reply that has begun, and the calls in it.
    #[serde(rename = "waiting_for_tool_calls")]
    ToolCalls,
    /// For the answers of calls.
    #[serde(rename = "waiting_for_observation")]
    Observation,
}

impl Phase {
    /// The word in events and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Initializing => "initializing",
            Self::Observing => "observing",
            Self::Reasoning => "reasoning",
            Self::Acting => "acting",
            Self::Evaluating => "evaluating",
            Self::Terminating => "terminating",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

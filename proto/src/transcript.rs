//! What a model is shown of a thread.
//!
//! A call cannot be in a transcript without its observation: the two are one value. So no crash,
//! cancel, steer, denial or compaction can build a request that a provider would reject for a
//! missing, doubled or misplaced tool message.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ids::ToolCallId;
use crate::observation::Observation;

/// A call and the one observation that answers it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AnsweredCall {
    tool: String,
    arguments: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    opaque: Option<Value>,
    observation: Observation,
}

impl AnsweredCall {
    /// Binds a call to its observation; the observation's id is the call's id.
    pub fn new(
        tool: impl Into<String>,
        arguments: Map<String, Value>,
        opaque: Option<Value>,
        observation: Observation,
    ) -> Self {
        Self { tool: tool.into(), arguments, opaque, observation }
    }

    /// The id that pairs the two on the wire.
    pub fn tool_call_id(&self) -> &ToolCallId {
        &self.observation.tool_call_id
    }

    /// The name the model used.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// The arguments.
    pub fn arguments(&self) -> &Map<String, Value> {
        &self.arguments
    }

    /// Provider fields to send back unread.
    pub fn opaque(&self) -> Option<&Value> {
        self.opaque.as_ref()
    }

    /// The answer.
    pub fn observation(&self) -> &Observation {
        &self.observation
    }
}

/// One entry, in the order the model reads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub enum Entry {
    /// The user's words, verbatim.
    User {
        /// The words.
        text: String,
    },
    /// A word of the runtime to the model, such as the late outcome of a doubtful call.
    Note {
        /// The word.
        text: String,
    },
    /// A reply of the model with its calls, each answered.
    Turn(TurnEntry),
}

/// A reply of the model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnEntry {
    /// What it said.
    pub text: String,
    /// What it thought, when the provider wants that back.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reasoning: String,
    /// Its calls, answered, in reply order.
    pub calls: Vec<AnsweredCall>,
    /// Provider fields of the reply to send back unread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Value>,
}

/// Two calls of one transcript share an id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("tool call id {0} appears twice in the transcript")]
pub struct RepeatedId(pub ToolCallId);

/// A conversation that every provider accepts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Vec<Entry>", into = "Vec<Entry>")]
pub struct Transcript {
    entries: Vec<Entry>,
}

impl Transcript {
    /// Checks that every call id is used once.
    pub fn new(entries: Vec<Entry>) -> Result<Self, RepeatedId> {
        let mut seen = BTreeSet::new();
        for entry in &entries {
            if let Entry::Turn(turn) = entry {
                for call in &turn.calls {
                    if !seen.insert(call.tool_call_id().clone()) {
                        return Err(RepeatedId(call.tool_call_id().clone()));
                    }
                }
            }
        }
        Ok(Self { entries })
    }

    /// The entries, oldest first.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }
}

impl TryFrom<Vec<Entry>> for Transcript {
    type Error = RepeatedId;
    fn try_from(entries: Vec<Entry>) -> Result<Self, RepeatedId> {
        Self::new(entries)
    }
}

impl From<Transcript> for Vec<Entry> {
    fn from(transcript: Transcript) -> Self {
        transcript.entries
    }
}

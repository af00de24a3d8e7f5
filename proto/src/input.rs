//! What enters a thread from outside.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{
    AgentName, ArgumentsHash, Fingerprint, InputKey, ThreadRef, ToolCallId, ToolName,
};

/// An input; the same key in the same thread is the same input, for ever: the first one wins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Input {
    /// The client's idempotency key.
    pub key: InputKey,
    /// Who sent it.
    #[serde(default)]
    pub source: Source,
    /// What it asks.
    pub body: InputBody,
}

/// Who sent an input.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum Source {
    /// A person or a program outside.
    #[default]
    Client,
    /// A call of another thread that waits for this one's answer.
    Parent {
        /// The waiting thread.
        thread: ThreadRef,
        /// The waiting call.
        tool_call_id: ToolCallId,
    },
}

/// What an input asks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "input", rename_all = "snake_case")]
pub enum InputBody {
    /// Text for the agent. Starts a run when none is active, else waits for the next one.
    Message(Message),
    /// Text that the active run reads before its next turn; without an active run, a message.
    Steer(Message),
    /// Stops the current turn, keeps what was said, and goes on with this text.
    Interrupt(Message),
    /// Stops the active run.
    Cancel {
        /// Why, for people.
        #[serde(default)]
        reason: String,
    },
    /// Decides one approval.
    Decision(Decision),
}

/// Text for the agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// The words, verbatim.
    pub text: String,
    /// Who is to answer; the thread keeps its first agent when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    /// Tools whose approval is given with the input.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approve: Vec<ToolName>,
    /// How hard the task is, 1 to 5; sets the turn limit of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complexity: Option<u32>,
}

impl Message {
    /// Plain text for the thread's own agent.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), agent: None, approve: Vec::new(), complexity: None }
    }
}

/// A person's word on one call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Decision {
    /// The call.
    pub tool_call_id: ToolCallId,
    /// Agreed or not.
    pub approve: bool,
    /// What was shown when the person decided; another hash decides nothing.
    pub arguments_hash: ArgumentsHash,
    /// The tool that was shown; another one decides nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<Fingerprint>,
    /// Who decided.
    pub by: String,
    /// A word to the model.
    #[serde(default)]
    pub note: String,
}

//! What a model is asked and what comes back, whatever the provider's wire looks like.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::agent::{Profile, Protocol};
use crate::error_code::ErrorCode;
use crate::fact::{Estimator, Usage};
use crate::ids::{AgentName, TenantId, ToolName};
use crate::notice::Deadline;
use crate::transcript::Transcript;

/// A tool as the model sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelTool {
    /// Its name.
    pub name: ToolName,
    /// What it does.
    pub description: String,
    /// JSON Schema of its arguments; shared by all requests that offer the tool.
    #[serde(with = "shared")]
    #[schemars(with = "Value")]
    pub parameters: Arc<Value>,
}

/// A named part of the prompt, in a stable order so that prefixes stay cacheable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Block {
    /// Which part, for `show --prompt`: `role`, `instructions`, `tools`, `summary`, `steps`, `output`.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// One model request. The conversation can only be a [`Transcript`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelRequest {
    /// Who asks; never sent, but two agents may have different models of the same name.
    pub agent: AgentName,
    /// The model to ask for.
    pub model: String,
    /// Models to ask for, in this order, when the one before fails without a word.
    #[serde(default)]
    pub fallbacks: Vec<String>,
    /// How calls travel.
    pub protocol: Protocol,
    /// The family of the endpoint, when the agent names it; never sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// Goes before the conversation, as the system message.
    pub head: Vec<Block>,
    /// The conversation.
    pub transcript: Transcript,
    /// Goes after the conversation, as a last system word; may be empty.
    pub tail: Vec<Block>,
    /// The tools on offer.
    pub tools: Vec<ModelTool>,
    /// Sampling temperature.
    #[serde(default)]
    pub temperature: Option<f64>,
    /// Limit of the reply, in tokens.
    #[serde(default)]
    pub max_completion_tokens: Option<u32>,
    /// For whom; never sent, for limits that tenants share.
    #[serde(skip)]
    pub tenant: Option<TenantId>,
    /// A guess at its tokens, as its provider counts; never sent.
    #[serde(skip)]
    pub likely_tokens: u64,
    /// The same without correction; never sent.
    #[serde(skip)]
    pub estimate: Estimate,
    /// How often it was asked in vain before, each time with retries; never sent, for people.
    #[serde(skip)]
    pub failed_rounds: u32,
}

/// The tokens of a request before any correction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// How they were estimated.
    pub by: Estimator,
    /// How many.
    pub tokens: u64,
}

impl Default for Estimate {
    fn default() -> Self {
        Self { by: Estimator::Characters, tokens: 0 }
    }
}

/// Why the reply ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// Said all.
    Stop,
    /// Asked for tools.
    ToolCalls,
    /// Ran into the token limit.
    Length,
    /// A filter cut it.
    ContentFilter,
}

/// A call whose arguments have closed in the stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReadyCall {
    /// Place among the calls of the reply, from 0, in wire order.
    pub position: u32,
    /// The name as resolved by the reader, or as sent when it is none of the offered tools.
    pub name: String,
    /// The arguments.
    pub arguments: Map<String, Value>,
    /// Provider fields that came with it.
    #[serde(default)]
    pub opaque: Option<Value>,
}

/// A call that was begun but cannot run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BrokenCall {
    /// Place among the calls of the reply, from 0, in wire order.
    pub position: u32,
    /// The name as far as known.
    pub name: String,
    /// The arguments as they came, cut to 4 KiB.
    pub raw: String,
    /// What is wrong with them.
    pub problem: String,
}

/// How a reply ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplyEnd {
    /// Why; absent when the provider gave no reason.
    pub finish: Option<Finish>,
    /// What it cost, when the provider said so.
    pub usage: Option<Usage>,
    /// The model that answered, when the provider said so.
    pub model: Option<String>,
    /// How sure the model said it is (`contract`).
    #[serde(default)]
    pub confidence: Option<f64>,
    /// The words of a `contract` object without calls: the answer. They came as reasoning.
    #[serde(default)]
    pub answer: Option<String>,
    /// Provider fields of the reply that must be sent back unread.
    #[serde(default)]
    pub opaque: Option<Value>,
}

impl ReplyEnd {
    /// The end of a reply that was longer than anybody wanted.
    pub fn cut() -> Self {
        let finish = Some(Finish::Length);
        Self { finish, usage: None, model: None, confidence: None, answer: None, opaque: None }
    }
}

/// What happens while a reply streams.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum ModelEvent {
    /// More of what it says.
    Text {
        /// The new part.
        delta: String,
    },
    /// More of what it thinks.
    Reasoning {
        /// The new part.
        delta: String,
    },
    /// A call has begun; its arguments still come.
    CallStarted {
        /// Place among the calls.
        position: u32,
        /// The name as far as known.
        name: String,
    },
    /// A call can be dispatched.
    CallReady(ReadyCall),
    /// A call cannot run.
    CallBroken(BrokenCall),
    /// The reply is over; always the last event of a good stream.
    End(ReplyEnd),
}

/// What went wrong with a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModelErrorKind {
    /// The provider reported an error inside the stream or body.
    ProviderError,
    /// An HTTP status that is not success.
    HttpError,
    /// Connection refused, reset, DNS, TLS.
    Network,
    /// The body ended without an end.
    Truncated,
    /// A deadline of the reply.
    Timeout(Deadline),
    /// The reply ran into the token limit inside a call or object.
    Length,
    /// A filter cut it.
    ContentFilter,
    /// The reply had nothing in it.
    EmptyResponse,
    /// A piece of the stream was not JSON.
    MalformedChunk,
    /// The body was not a reply at all.
    BadResponse,
    /// The `contract` object was not one.
    ContractViolation,
}

/// A reply that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// What went wrong.
    pub kind: ModelErrorKind,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    /// How long the provider asked to wait.
    pub retry_after: Option<Duration>,
    /// The HTTP status, when there was one.
    pub status: Option<u16>,
    /// What the provider said, for people.
    pub message: String,
    /// The code of ours that a rehearsal gave; real providers have none.
    pub code: Option<ErrorCode>,
}

/// A shared value on the wire is a value.
mod shared {
    use std::sync::Arc;

    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};
    use serde_json::Value;

    pub(super) fn serialize<S: Serializer>(
        value: &Arc<Value>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        value.as_ref().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Arc<Value>, D::Error> {
        Value::deserialize(deserializer).map(Arc::new)
    }
}

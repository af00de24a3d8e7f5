//! What a tool promises: the part of a manifest that planners and models see.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{Fingerprint, InstanceId, ToolName};

/// What repeating a tool does.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Changes nothing; may run any number of times.
    ReadOnly,
    /// Repeating with the same idempotency key changes nothing more.
    Idempotent,
    /// A probe can tell whether the effect happened.
    Checkable,
    /// Must not happen twice, and nobody can check.
    Irreversible,
}

impl Effect {
    /// Whether an attempt must be journaled as a start record before its effect.
    pub fn needs_start(self) -> bool {
        matches!(self, Self::Checkable | Self::Irreversible)
    }

    /// Whether the call may be dispatched before the model's reply has ended, by default.
    pub fn is_safe_early(self) -> bool {
        !self.needs_start()
    }

    /// The word used in files and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read_only",
            Self::Idempotent => "idempotent",
            Self::Checkable => "checkable",
            Self::Irreversible => "irreversible",
        }
    }
}

/// When a person has to agree before the call is dispatched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Approval {
    /// Not asked.
    #[default]
    Never,
    /// Each call.
    Always,
    /// Once untrusted text has entered the context.
    WhenTainted,
    /// When this expression over the arguments holds, or cannot be evaluated. In CEL; `tainted` says
    /// whether untrusted text has entered the context.
    When(String),
}

/// How long a call may wait and take, where its tool says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Deadlines {
    /// From its dispatch until it has to begin, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_ms: Option<u64>,
    /// From its beginning until all attempts have to be over, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_ms: Option<u64>,
}

impl Deadlines {
    /// Whether the tool says nothing.
    pub(crate) fn is_unsaid(&self) -> bool {
        *self == Self::default()
    }
}

/// Retries inside one dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Retry {
    /// Counts the first try; at least 1.
    pub max_attempts: u32,
    /// Pause before the second try; doubles with each further one.
    pub backoff_ms: u64,
}

impl Default for Retry {
    fn default() -> Self {
        Self { max_attempts: 3, backoff_ms: 500 }
    }
}

/// The contract of one tool, as a worker registers it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolContract {
    /// The name models call it by.
    pub name: ToolName,
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema of the arguments; an object schema.
    pub parameters: Value,
    /// What repeating does.
    pub effect: Effect,
    /// Limit of one attempt, in milliseconds.
    pub timeout_ms: u64,
    /// Retries inside one dispatch.
    #[serde(default)]
    pub retry: Retry,
    /// How long a call may wait and take in all.
    #[serde(default, skip_serializing_if = "Deadlines::is_unsaid")]
    pub deadlines: Deadlines,
    /// Whether a person has to agree.
    #[serde(default)]
    pub approval: Approval,
    /// The agent or tenant must hold one of these; empty means no limit.
    #[serde(default)]
    pub permissions: Vec<String>,
    /// Tokens that a result may take in the transcript.
    #[serde(default = "default_result_tokens")]
    pub result_tokens: u32,
    /// JSON Schema that a result's content must meet, when it is JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_schema: Option<Value>,
    /// Hash over contract and implementation.
    pub fingerprint: Fingerprint,
}

fn default_result_tokens() -> u32 {
    300
}

impl ToolContract {
    /// The limit of one attempt.
    pub fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms)
    }

    /// How long all attempts and the pauses between them may take.
    pub fn total_time(&self) -> Duration {
        total_time(self.timeout(), &self.retry, self.deadlines)
    }
}

/// How long all attempts and the pauses between them may take; one attempt at least.
pub fn total_time(timeout: Duration, retry: &Retry, deadlines: Deadlines) -> Duration {
    let attempts = retry.max_attempts.max(1);
    let pauses = (1..attempts).map(|n| retry.pause_before(n.saturating_add(1)));
    let all = timeout.saturating_mul(attempts).saturating_add(pauses.sum());
    let most = deadlines.total_ms.map_or(Duration::MAX, Duration::from_millis);
    all.min(most).max(timeout)
}

impl Retry {
    /// The pause before attempt `attempt` (the second is 2), without jitter; at most one minute.
    pub fn pause_before(&self, attempt: u32) -> Duration {
        let doublings = attempt.saturating_sub(2).min(16);
        let pause = Duration::from_millis(self.backoff_ms).saturating_mul(1 << doublings);
        pause.min(Duration::from_mins(1))
    }
}

/// What a worker offers, renewed while it lives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Registration {
    /// The worker.
    pub worker: InstanceId,
    /// Its tools.
    pub tools: Vec<ToolContract>,
}

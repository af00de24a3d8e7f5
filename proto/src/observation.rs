//! The one result of a tool call that enters the transcript.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error_code::ErrorCode;
use crate::ids::{ArgumentsHash, ArtifactId, Fingerprint, InstanceId, ThreadRef, ToolCallId};
use crate::time::Timestamp;

/// How far a cancelled or doubtful call had come.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Receipt {
    /// The call never started; a journaled bar proves it where the tool needs proof.
    NeverStarted,
    /// Stopped before its effect began.
    StoppedBeforeEffect,
    /// Stopped after its effect began.
    StoppedAfterEffectBegan,
    /// It had completed.
    Completed,
    /// Nobody can tell.
    Unknown,
}

/// A payload kept outside the message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArtifactRef {
    /// Its address.
    pub id: ArtifactId,
    /// Its length in bytes.
    pub bytes: u64,
}

/// Who produced a result and from what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stamp {
    /// The worker.
    pub worker: InstanceId,
    /// The tool that ran.
    pub fingerprint: Fingerprint,
    /// The arguments it ran with.
    pub arguments_hash: ArgumentsHash,
    /// When the attempt started.
    pub started_at: Timestamp,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// The call that was executed, when it is not this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Provenance>,
    /// Which of the tool's other ways was taken, from 1; 0 for its own.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub fallback: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The call whose execution a result is taken from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Provenance {
    /// Its thread, of the same tenant.
    pub thread: ThreadRef,
    /// The call.
    pub tool_call_id: ToolCallId,
    /// Whether the result is older than its tool allows, and stands in for a failure.
    #[serde(default)]
    pub stale: bool,
}

/// What came of a call.
///
/// `attempt` is 0 when no attempt produced it: a planner closed the call, or a worker refused it or
/// reports a doubt. So a late real result is never taken for a repetition of such an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Observation {
    /// The call.
    pub tool_call_id: ToolCallId,
    /// The attempt that produced it, from 1; 0 when none did.
    pub attempt: u32,
    /// Absent on success, else why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<ErrorCode>,
    /// What the model reads.
    pub content: String,
    /// The full result, when `content` is only a part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<ArtifactRef>,
    /// How far the call had come, when it was stopped or is in doubt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<Receipt>,
    /// Who produced it; absent when a planner did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamp: Option<Stamp>,
}

impl Observation {
    /// An observation that a planner makes because no worker will.
    pub fn synthesised(
        tool_call_id: ToolCallId,
        code: ErrorCode,
        content: impl Into<String>,
    ) -> Self {
        Self {
            tool_call_id,
            attempt: 0,
            code: Some(code),
            content: content.into(),
            artifact: None,
            receipt: None,
            stamp: None,
        }
    }

    /// The same with a receipt.
    #[must_use]
    pub fn with_receipt(mut self, receipt: Receipt) -> Self {
        self.receipt = Some(receipt);
        self
    }

    /// Whether the tool succeeded.
    pub fn is_ok(&self) -> bool {
        self.code.is_none()
    }
}

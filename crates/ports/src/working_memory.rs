//! Fast memory that may be lost whole. It saves work and protects nothing that must not happen twice.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use proto::ids::{InstanceId, Sequence, ThreadRef, ToolCallId, ToolName};
use proto::time::Timestamp;

use crate::BusError;

/// The outcome of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It is ours until the lease ends.
    Won,
    /// Another holder has it.
    Held {
        /// Who.
        by: InstanceId,
        /// How long its lease still lasts, by the store's clock.
        left: Duration,
    },
}

/// A thread's folded state, opaque to the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The last record folded.
    pub sequence: Sequence,
    /// The state.
    pub payload: Bytes,
}

/// Text of a turn that is still streaming, for whoever has to seal it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnText {
    /// The `turn_started` it belongs to.
    pub started: Sequence,
    /// What was said.
    pub text: String,
    /// What was thought.
    pub reasoning: String,
}

/// One call's outcome counted by a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When.
    pub at: Timestamp,
    /// Whether the tool worked.
    pub ok: bool,
}

/// Working memory of planners and workers.
#[async_trait]
pub trait WorkingMemory: Send + Sync {
    /// Takes or renews the lease on a call for `holder`.
    async fn claim(
        &self,
        thread: &ThreadRef,
        call: &ToolCallId,
        holder: &InstanceId,
        lease: Duration,
    ) -> Result<Claim, BusError>;

    /// Gives a lease back, if `holder` has it.
    async fn release(
        &self,
        thread: &ThreadRef,
        call: &ToolCallId,
        holder: &InstanceId,
    ) -> Result<(), BusError>;

    /// Keeps a finished call's encoded observation for `keep`; the first one stays.
    /// Answers with the one that is kept.
    async fn keep_done(
        &self,
        thread: &ThreadRef,
        call: &ToolCallId,
        observation: Bytes,
        keep: Duration,
    ) -> Result<Bytes, BusError>;

    /// The kept observation.
    async fn done(&self, thread: &ThreadRef, call: &ToolCallId) -> Result<Option<Bytes>, BusError>;

    /// Marks a call as cancelled for workers that missed the hint.
    async fn mark_cancelled(
        &self,
        thread: &ThreadRef,
        call: &ToolCallId,
        keep: Duration,
    ) -> Result<(), BusError>;

    /// Whether a call was marked as cancelled.
    async fn is_cancelled(&self, thread: &ThreadRef, call: &ToolCallId) -> Result<bool, BusError>;

    /// Keeps a snapshot unless a newer one is there.
    async fn keep_snapshot(&self, thread: &ThreadRef, snapshot: Snapshot) -> Result<(), BusError>;

    /// The newest snapshot.
    async fn snapshot(&self, thread: &ThreadRef) -> Result<Option<Snapshot>, BusError>;

    /// Keeps the text of the turn in progress, replacing what was kept for the thread unless that
    /// belongs to a later turn.
    async fn keep_turn_text(&self, thread: &ThreadRef, text: TurnText) -> Result<(), BusError>;

    /// The kept text.
    async fn turn_text(&self, thread: &ThreadRef) -> Result<Option<TurnText>, BusError>;

    /// Counts outcomes for a tool's breaker; samples older than `window` are dropped.
    async fn add_samples(
        &self,
        tool: &ToolName,
        samples: &[Sample],
        window: Duration,
    ) -> Result<(), BusError>;

    /// The samples of a tool, oldest first.
    async fn samples(&self, tool: &ToolName) -> Result<Vec<Sample>, BusError>;

    /// Takes the one probe of an open breaker for `holder`, until the lease ends.
    async fn take_probe(
        &self,
        tool: &ToolName,
        holder: &InstanceId,
        lease: Duration,
    ) -> Result<bool, BusError>;

    /// Lists a thread as active with its next deadline, or takes it off the list.
    async fn set_active(
        &self,
        thread: &ThreadRef,
        deadline: Option<Timestamp>,
    ) -> Result<(), BusError>;

    /// Active threads whose deadline is at or before `until`, earliest first, at most `limit`.
    async fn active(&self, until: Timestamp, limit: usize) -> Result<Vec<ThreadRef>, BusError>;
}

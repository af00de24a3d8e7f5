//! Fast memory that may be lost whole. It saves work and protects nothing that must not happen twice.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use proto::ids::{InstanceId, Sequence, ThreadRef, ToolCallId, ToolName};
use proto::time::Timestamp;

use crate::BusError;
use crate::reads::{Joined, KeptRead, ReadKey};

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

/// What a worker asks before it begins with a call.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The call's thread.
    pub thread: &'a ThreadRef,
    /// The call.
    pub call: &'a ToolCallId,
    /// Who asks, and for how long, when the call is to be claimed.
    pub claim: Option<(&'a InstanceId, Duration)>,
}

/// What a worker is told before it begins with a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entered {
    /// The kept observation; with one nothing is claimed.
    pub done: Option<Bytes>,
    /// Whether the call was marked as cancelled.
    pub cancelled: bool,
    /// The claim, when it was asked for.
    pub claim: Option<Claim>,
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

    /// The kept observation, the cancel mark and, unless there is an observation, the claim: what lies
    /// before an attempt, in one step where the store can.
    async fn enter(&self, entry: Entry<'_>) -> Result<Entered, BusError> {
        let Entry { thread, call, claim } = entry;
        let done = self.done(thread, call).await?;
        let cancelled = self.is_cancelled(thread, call).await?;
        let claim = match claim.filter(|_| done.is_none()) {
            Some((holder, lease)) => Some(self.claim(thread, call, holder, lease).await?),
            None => None,
        };
        Ok(Entered { done, cancelled, claim })
    }

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

    /// Joins the calls that want one read: a result whose execution began at `not_before` or later
    /// will do; else one call executes while its lease lasts, and the same call renews it.
    async fn join_read(
        &self,
        key: &ReadKey,
        by: &str,
        lease: Duration,
        not_before: Timestamp,
    ) -> Result<Joined, BusError>;

    /// Keeps the result of a shared read unless a newer one is kept, and ends the lease of `by`.
    async fn keep_read(
        &self,
        key: &ReadKey,
        by: &str,
        read: KeptRead,
        keep: Duration,
    ) -> Result<(), BusError>;

    /// The kept result, whatever its age.
    async fn kept_read(&self, key: &ReadKey) -> Result<Option<KeptRead>, BusError>;

    /// Ends the lease of `by` without a result: the next call executes.
    async fn leave_read(&self, key: &ReadKey, by: &str) -> Result<(), BusError>;

    /// Takes or keeps one of `most` places of a tool; answers how long all are taken at least, if
    /// they are.
    async fn take_place(
        &self,
        tool: &ToolName,
        who: &str,
        most: u32,
        lease: Duration,
    ) -> Result<Option<Duration>, BusError>;

    /// Gives a place back.
    async fn leave_place(&self, tool: &ToolName, who: &str) -> Result<(), BusError>;

    /// Lists a thread as active with its next deadline, or takes it off the list.
    async fn set_active(
        &self,
        thread: &ThreadRef,
        deadline: Option<Timestamp>,
    ) -> Result<(), BusError>;

    /// Active threads whose deadline is at or before `until`, earliest first, at most `limit`.
    async fn active(&self, until: Timestamp, limit: usize) -> Result<Vec<ThreadRef>, BusError>;
}

//! Working memory with kill points around claims and kept results.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use ports::BusError;
use ports::reads::{Joined, KeptRead, ReadKey};
use ports::working_memory::{Claim, Entered, Entry, Sample, Snapshot, TurnText, WorkingMemory};
use proto::ids::{InstanceId, ThreadRef, ToolCallId, ToolName};
use proto::time::Timestamp;

use super::kill::{KillPoint, KillSwitch};

pub(super) struct KillMemory {
    pub(super) inner: Arc<dyn WorkingMemory>,
    pub(super) switch: KillSwitch,
}

#[async_trait]
impl WorkingMemory for KillMemory {
    async fn claim(
        &self,
        thread: &ThreadRef,
        call: &ToolCallId,
        holder: &InstanceId,
        lease: Duration,
    ) -> Result<Claim, BusError> {
        self.switch.reached(KillPoint::BeforeClaim);
        let claim = self.inner.claim(thread, call, holder, lease).await?;
        self.switch.reached(KillPoint::AfterClaim);
        Ok(claim)
    }

    async fn enter(&self, entry: Entry<'_>) -> Result<Entered, BusError> {
        if entry.claim.is_none() {
            return self.inner.enter(entry).await;
        }
        self.switch.reached(KillPoint::BeforeClaim);
        let entered = self.inner.enter(entry).await?;
        if entered.claim.is_some() {
            self.switch.reached(KillPoint::AfterClaim);
        }
        Ok(entered)
    }

    async fn release(
        &self,
        thread: &ThreadRef,
        call: &ToolCallId,
        holder: &InstanceId,
    ) -> Result<(), BusError> {
        self.inner.release(thread, call, holder).await
    }

    async fn keep_done(
        &self,
        thread: &ThreadRef,
        call: &ToolCallId,
        observation: Bytes,
        keep: Duration,
    ) -> Result<Bytes, BusError> {
        self.switch.reached(KillPoint::BeforeKept);
        let kept = self.inner.keep_done(thread, call, observation, keep).await?;
        self.switch.reached(KillPoint::AfterKept);
        Ok(kept)
    }

    async fn done(&self, thread: &ThreadRef, call: &ToolCallId) -> Result<Option<Bytes>, BusError> {
        self.inner.done(thread, call).await
    }

    async fn mark_cancelled(
        &self,
        thread: &ThreadRef,
        call: &ToolCallId,
        keep: Duration,
    ) -> Result<(), BusError> {
        self.inner.mark_cancelled(thread, call, keep).await
    }

    async fn is_cancelled(&self, thread: &ThreadRef, call: &ToolCallId) -> Result<bool, BusError> {
        self.inner.is_cancelled(thread, call).await
    }

    async fn keep_snapshot(&self, thread: &ThreadRef, snapshot: Snapshot) -> Result<(), BusError> {
        self.inner.keep_snapshot(thread, snapshot).await
    }

    async fn snapshot(&self, thread: &ThreadRef) -> Result<Option<Snapshot>, BusError> {
        self.inner.snapshot(thread).await
    }

    async fn keep_turn_text(&self, thread: &ThreadRef, text: TurnText) -> Result<(), BusError> {
        self.inner.keep_turn_text(thread, text).await
    }

    async fn turn_text(&self, thread: &ThreadRef) -> Result<Option<TurnText>, BusError> {
        self.inner.turn_text(thread).await
    }

    async fn add_samples(
        &self,
        tool: &ToolName,
        samples: &[Sample],
        window: Duration,
    ) -> Result<(), BusError> {
        self.inner.add_samples(tool, samples, window).await
    }

    async fn samples(&self, tool: &ToolName) -> Result<Vec<Sample>, BusError> {
        self.inner.samples(tool).await
    }

    async fn take_probe(
        &self,
        tool: &ToolName,
        holder: &InstanceId,
        lease: Duration,
    ) -> Result<bool, BusError> {
        self.inner.take_probe(tool, holder, lease).await
    }

    async fn join_read(
        &self,
        key: &ReadKey,
        by: &str,
        lease: Duration,
        not_before: Timestamp,
    ) -> Result<Joined, BusError> {
        self.inner.join_read(key, by, lease, not_before).await
    }

    async fn keep_read(
        &self,
        key: &ReadKey,
        by: &str,
        read: KeptRead,
        keep: Duration,
    ) -> Result<(), BusError> {
        self.switch.reached(KillPoint::BeforeShared);
        self.inner.keep_read(key, by, read, keep).await?;
        self.switch.reached(KillPoint::AfterShared);
        Ok(())
    }

    async fn kept_read(&self, key: &ReadKey) -> Result<Option<KeptRead>, BusError> {
        self.inner.kept_read(key).await
    }

    async fn leave_read(&self, key: &ReadKey, by: &str) -> Result<(), BusError> {
        self.inner.leave_read(key, by).await
    }

    async fn take_place(
        &self,
        tool: &ToolName,
        who: &str,
        most: u32,
        lease: Duration,
    ) -> Result<Option<Duration>, BusError> {
        self.inner.take_place(tool, who, most, lease).await
    }

    async fn leave_place(&self, tool: &ToolName, who: &str) -> Result<(), BusError> {
        self.inner.leave_place(tool, who).await
    }

    async fn set_active(
        &self,
        thread: &ThreadRef,
        deadline: Option<Timestamp>,
    ) -> Result<(), BusError> {
        self.inner.set_active(thread, deadline).await
    }

    async fn active(&self, until: Timestamp, limit: usize) -> Result<Vec<ThreadRef>, BusError> {
        self.inner.active(until, limit).await
    }
}

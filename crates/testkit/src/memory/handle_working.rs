//! Working memory as one process sees it.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use ports::BusError;
use ports::reads::{Joined, KeptRead, ReadKey};
use ports::working_memory::{Claim, Sample, Snapshot, TurnText, WorkingMemory};
use proto::ids::{InstanceId, ThreadRef, ToolCallId, ToolName};
use proto::time::Timestamp;

use super::faults::OpKind;
use super::handle::{BusHandle, of_thread, plain};

/// Forwards each call through the gate.
macro_rules! forward {
    ($self:ident, $op:expr, $call:ident($($argument:expr),*)) => {{
        let entered = $self.enter(&$op).await?;
        let answer = $self.bus.working_memory().$call($($argument),*).await;
        $self.leave(&entered).await;
        answer
    }};
}

#[async_trait]
impl WorkingMemory for BusHandle {
    async fn claim(
        &self,
        thread: &ThreadRef,
        call: &ToolCallId,
        holder: &InstanceId,
        lease: Duration,
    ) -> Result<Claim, BusError> {
        forward!(self, of_thread(OpKind::Remember, thread), claim(thread, call, holder, lease))
    }

    async fn release(
        &self,
        thread: &ThreadRef,
        call: &ToolCallId,
        holder: &InstanceId,
    ) -> Result<(), BusError> {
        forward!(self, of_thread(OpKind::Remember, thread), release(thread, call, holder))
    }

    async fn keep_done(
        &self,
        thread: &ThreadRef,
        call: &ToolCallId,
        observation: Bytes,
        keep: Duration,
    ) -> Result<Bytes, BusError> {
        let op = of_thread(OpKind::Remember, thread);
        forward!(self, op, keep_done(thread, call, observation, keep))
    }

    async fn done(&self, thread: &ThreadRef, call: &ToolCallId) -> Result<Option<Bytes>, BusError> {
        forward!(self, of_thread(OpKind::Recall, thread), done(thread, call))
    }

    async fn mark_cancelled(
        &self,
        thread: &ThreadRef,
        call: &ToolCallId,
        keep: Duration,
    ) -> Result<(), BusError> {
        forward!(self, of_thread(OpKind::Remember, thread), mark_cancelled(thread, call, keep))
    }

    async fn is_cancelled(&self, thread: &ThreadRef, call: &ToolCallId) -> Result<bool, BusError> {
        forward!(self, of_thread(OpKind::Recall, thread), is_cancelled(thread, call))
    }

    async fn keep_snapshot(&self, thread: &ThreadRef, snapshot: Snapshot) -> Result<(), BusError> {
        forward!(self, of_thread(OpKind::Remember, thread), keep_snapshot(thread, snapshot))
    }

    async fn snapshot(&self, thread: &ThreadRef) -> Result<Option<Snapshot>, BusError> {
        forward!(self, of_thread(OpKind::Recall, thread), snapshot(thread))
    }

    async fn keep_turn_text(&self, thread: &ThreadRef, text: TurnText) -> Result<(), BusError> {
        forward!(self, of_thread(OpKind::Remember, thread), keep_turn_text(thread, text))
    }

    async fn turn_text(&self, thread: &ThreadRef) -> Result<Option<TurnText>, BusError> {
        forward!(self, of_thread(OpKind::Recall, thread), turn_text(thread))
    }

    async fn add_samples(
        &self,
        tool: &ToolName,
        samples: &[Sample],
        window: Duration,
    ) -> Result<(), BusError> {
        forward!(self, plain(OpKind::Remember), add_samples(tool, samples, window))
    }

    async fn samples(&self, tool: &ToolName) -> Result<Vec<Sample>, BusError> {
        forward!(self, plain(OpKind::Recall), samples(tool))
    }

    async fn take_probe(
        &self,
        tool: &ToolName,
        holder: &InstanceId,
        lease: Duration,
    ) -> Result<bool, BusError> {
        forward!(self, plain(OpKind::Remember), take_probe(tool, holder, lease))
    }

    async fn join_read(
        &self,
        key: &ReadKey,
        by: &str,
        lease: Duration,
        not_before: Timestamp,
    ) -> Result<Joined, BusError> {
        forward!(self, plain(OpKind::Remember), join_read(key, by, lease, not_before))
    }

    async fn keep_read(
        &self,
        key: &ReadKey,
        by: &str,
        read: KeptRead,
        keep: Duration,
    ) -> Result<(), BusError> {
        forward!(self, plain(OpKind::Remember), keep_read(key, by, read, keep))
    }

    async fn kept_read(&self, key: &ReadKey) -> Result<Option<KeptRead>, BusError> {
        forward!(self, plain(OpKind::Recall), kept_read(key))
    }

    async fn leave_read(&self, key: &ReadKey, by: &str) -> Result<(), BusError> {
        forward!(self, plain(OpKind::Remember), leave_read(key, by))
    }

    async fn take_place(
        &self,
        tool: &ToolName,
        who: &str,
        most: u32,
        lease: Duration,
    ) -> Result<Option<Duration>, BusError> {
        forward!(self, plain(OpKind::Remember), take_place(tool, who, most, lease))
    }

    async fn leave_place(&self, tool: &ToolName, who: &str) -> Result<(), BusError> {
        forward!(self, plain(OpKind::Remember), leave_place(tool, who))
    }

    async fn set_active(
        &self,
        thread: &ThreadRef,
        deadline: Option<Timestamp>,
    ) -> Result<(), BusError> {
        forward!(self, of_thread(OpKind::Remember, thread), set_active(thread, deadline))
    }

    async fn active(&self, until: Timestamp, limit: usize) -> Result<Vec<ThreadRef>, BusError> {
        forward!(self, plain(OpKind::Recall), active(until, limit))
    }
}

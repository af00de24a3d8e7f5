//! Working memory that is not there. Leases, kept results, snapshots and the list of active threads
//! only save work: without them a repeatable call may run twice at once, a turn that is taken over
//! is sealed without its words, and a result that was lost with its worker is not found again.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use ports::BusError;
use ports::reads::{Joined, KeptRead, ReadKey};
use ports::working_memory::{Claim, Sample, Snapshot, TurnText, WorkingMemory};
use proto::ids::{InstanceId, ThreadRef, ToolCallId, ToolName};
use proto::time::Timestamp;

/// Knows nothing and keeps nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NoWorkingMemory;

fn nothing() -> BusError {
    BusError::Unavailable("there is no working memory (no --redis)".to_owned())
}

#[async_trait]
impl WorkingMemory for NoWorkingMemory {
    async fn claim(
        &self,
        _: &ThreadRef,
        _: &ToolCallId,
        _: &InstanceId,
        _: Duration,
    ) -> Result<Claim, BusError> {
        Err(nothing())
    }

    async fn release(&self, _: &ThreadRef, _: &ToolCallId, _: &InstanceId) -> Result<(), BusError> {
        Ok(())
    }

    async fn keep_done(
        &self,
        _: &ThreadRef,
        _: &ToolCallId,
        observation: Bytes,
        _: Duration,
    ) -> Result<Bytes, BusError> {
        Ok(observation)
    }

    async fn done(&self, _: &ThreadRef, _: &ToolCallId) -> Result<Option<Bytes>, BusError> {
        Err(nothing())
    }

    async fn mark_cancelled(
        &self,
        _: &ThreadRef,
        _: &ToolCallId,
        _: Duration,
    ) -> Result<(), BusError> {
        Ok(())
    }

    async fn is_cancelled(&self, _: &ThreadRef, _: &ToolCallId) -> Result<bool, BusError> {
        Ok(false)
    }

    async fn keep_snapshot(&self, _: &ThreadRef, _: Snapshot) -> Result<(), BusError> {
        Ok(())
    }

    async fn snapshot(&self, _: &ThreadRef) -> Result<Option<Snapshot>, BusError> {
        Ok(None)
    }

    async fn keep_turn_text(&self, _: &ThreadRef, _: TurnText) -> Result<(), BusError> {
        Ok(())
    }

    async fn turn_text(&self, _: &ThreadRef) -> Result<Option<TurnText>, BusError> {
        Ok(None)
    }

    async fn add_samples(&self, _: &ToolName, _: &[Sample], _: Duration) -> Result<(), BusError> {
        Ok(())
    }

    async fn samples(&self, _: &ToolName) -> Result<Vec<Sample>, BusError> {
        Ok(Vec::new())
    }

    async fn take_probe(
        &self,
        _: &ToolName,
        _: &InstanceId,
        _: Duration,
    ) -> Result<bool, BusError> {
        Ok(true)
    }

    async fn join_read(
        &self,
        _: &ReadKey,
        _: &str,
        _: Duration,
        _: Timestamp,
    ) -> Result<Joined, BusError> {
        Err(nothing())
    }

    async fn keep_read(
        &self,
        _: &ReadKey,
        _: &str,
        _: KeptRead,
        _: Duration,
    ) -> Result<(), BusError> {
        Ok(())
    }

    async fn kept_read(&self, _: &ReadKey) -> Result<Option<KeptRead>, BusError> {
        Err(nothing())
    }

    async fn leave_read(&self, _: &ReadKey, _: &str) -> Result<(), BusError> {
        Ok(())
    }

    async fn take_place(
        &self,
        _: &ToolName,
        _: &str,
        _: u32,
        _: Duration,
    ) -> Result<Option<Duration>, BusError> {
        Err(nothing())
    }

    async fn leave_place(&self, _: &ToolName, _: &str) -> Result<(), BusError> {
        Ok(())
    }

    async fn set_active(&self, _: &ThreadRef, _: Option<Timestamp>) -> Result<(), BusError> {
        Ok(())
    }

    async fn active(&self, _: Timestamp, _: usize) -> Result<Vec<ThreadRef>, BusError> {
        Ok(Vec::new())
    }
}

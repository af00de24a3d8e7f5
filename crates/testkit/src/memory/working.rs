//! Working memory that can forget.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use ports::BusError;
use ports::reads::{Joined, KeptRead, ReadKey, ReadTable};
use ports::working_memory::{Claim, Sample, Snapshot, TurnText, WorkingMemory};
use proto::ids::{InstanceId, ThreadRef, ToolCallId, ToolName};
use proto::time::{Timestamp, millis};
use tokio::time::Instant;

use crate::lock::Lock;

/// How many writes can be forgotten one by one.
const UNDO: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Lease(ThreadRef, ToolCallId),
    Done(ThreadRef, ToolCallId),
    Cancelled(ThreadRef, ToolCallId),
    Snapshot(ThreadRef),
    Text(ThreadRef),
    Samples(ToolName),
    Probe(ToolName),
    Active(ThreadRef),
}

#[derive(Clone, Debug)]
enum Value {
    Holder(InstanceId, Instant),
    Done(Bytes, Instant),
    Cancelled(Instant),
    Snapshot(Snapshot),
    Text(TurnText),
    Samples(Vec<Sample>),
    Active(Timestamp),
}

#[derive(Debug, Default)]
struct Memory {
    values: BTreeMap<Key, Value>,
    undo: VecDeque<(Key, Option<Value>)>,
}

/// Working memory in memory; leases and keeping times follow `tokio`'s clock.
#[derive(Debug, Default)]
pub struct MemoryWorkingMemory {
    memory: Lock<Memory>,
    reads: Lock<ReadTable>,
    began: Began,
}

/// Shared reads count milliseconds from here.
#[derive(Debug)]
struct Began(Instant);

impl Default for Began {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl MemoryWorkingMemory {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// The newest `writes` did not survive; answers how many were there.
    pub fn forget_last(&self, writes: usize) -> usize {
        let mut memory = self.memory.lock();
        let mut forgotten = 0;
        while forgotten < writes {
            let Some((key, before)) = memory.undo.pop_back() else { break };
            match before {
                Some(value) => drop(memory.values.insert(key, value)),
                None => drop(memory.values.remove(&key)),
            }
            forgotten += 1;
        }
        forgotten
    }

    /// The result that is kept of a call, for whoever watches the world.
    pub fn kept_result(&self, thread: &ThreadRef, call: &ToolCallId) -> Option<Bytes> {
        self.memory.lock().done(&Key::Done(thread.clone(), call.clone()))
    }

    fn now(&self) -> Timestamp {
        Timestamp::default().after(self.began.0.elapsed())
    }

    /// Everything is lost; answers how much there was.
    pub fn forget_all(&self) -> usize {
        let mut memory = self.memory.lock();
        memory.undo.clear();
        let mut reads = self.reads.lock();
        let count = memory.values.len() + std::mem::take(&mut *reads).len();
        memory.values.clear();
        count
    }
}

impl Memory {
    fn set(&mut self, key: Key, value: Option<Value>) {
        let before = match value {
            Some(value) => self.values.insert(key.clone(), value),
            None => self.values.remove(&key),
        };
        self.undo.push_back((key, before));
        if self.undo.len() > UNDO {
            self.undo.pop_front();
        }
    }

    /// The living holder of a lease and how long it still has it.
    fn holder(&self, key: &Key) -> Option<(InstanceId, Duration)> {
        let Some(Value::Holder(holder, until)) = self.values.get(key) else { return None };
        let left = until.saturating_duration_since(Instant::now());
        (left > Duration::ZERO).then(|| (holder.clone(), left))
    }

    fn take_lease(&mut self, key: Key, holder: &InstanceId, lease: Duration) -> Claim {
        match self.holder(&key) {
            Some((by, left)) if by != *holder => Claim::Held { by, left },
            Some(_) | None => {
                let until = Instant::now() + lease;
                self.set(key, Some(Value::Holder(holder.clone(), until)));
                Claim::Won
            }
        }
    }

    fn done(&self, key: &Key) -> Option<Bytes> {
        match self.values.get(key) {
            Some(Value::Done(bytes, until)) if *until > Instant::now() => Some(bytes.clone()),
            _ => None,
        }
    }

    fn samples(&self, tool: &ToolName) -> Vec<Sample> {
        match self.values.get(&Key::Samples(tool.clone())) {
            Some(Value::Samples(samples)) => samples.clone(),
            _ => Vec::new(),
        }
    }

    fn active(&self, until: Timestamp) -> Vec<(Timestamp, ThreadRef)> {
        let mut found: Vec<_> = self
            .values
            .iter()
            .filter_map(|(key, value)| match (key, value) {
                (Key::Active(thread), Value::Active(at)) if *at <= until => {
                    Some((*at, thread.clone()))
                }
                _ => None,
            })
            .collect();
        found.sort();
        found
    }
}

#[async_trait]
impl WorkingMemory for MemoryWorkingMemory {
    async fn claim(
        &self,
        thread: &ThreadRef,
        call: &ToolCallId,
        holder: &InstanceId,
        lease: Duration,
    ) -> Result<Claim, BusError> {
        let key = Key::Lease(thread.clone(), call.clone());
        Ok(self.memory.lock().take_lease(key, holder, lease))
    }

    async fn release(
        &self,
        thread: &ThreadRef,
        call: &ToolCallId,
        holder: &InstanceId,
    ) -> Result<(), BusError> {
        let key = Key::Lease(thread.clone(), call.clone());
        let mut memory = self.memory.lock();
        if memory.holder(&key).is_some_and(|(by, _)| by == *holder) {
            memory.set(key, None);
        }
        Ok(())
    }

    async fn keep_done(
        &self,
        thread: &ThreadRef,
        call: &ToolCallId,
        observation: Bytes,
        keep: Duration,
    ) -> Result<Bytes, BusError> {
        let key = Key::Done(thread.clone(), call.clone());
        let mut memory = self.memory.lock();
        if let Some(kept) = memory.done(&key) {
            return Ok(kept);
        }
        let until = Instant::now() + keep;
        memory.set(key, Some(Value::Done(observation.clone(), until)));
        Ok(observation)
    }

    async fn done(&self, thread: &ThreadRef, call: &ToolCallId) -> Result<Option<Bytes>, BusError> {
        Ok(self.memory.lock().done(&Key::Done(thread.clone(), call.clone())))
    }

    async fn mark_cancelled(
        &self,
        thread: &ThreadRef,
        call: &ToolCallId,
        keep: Duration,
    ) -> Result<(), BusError> {
        let key = Key::Cancelled(thread.clone(), call.clone());
        let until = Instant::now() + keep;
        self.memory.lock().set(key, Some(Value::Cancelled(until)));
        Ok(())
    }

    async fn is_cancelled(&self, thread: &ThreadRef, call: &ToolCallId) -> Result<bool, BusError> {
        let key = Key::Cancelled(thread.clone(), call.clone());
        let memory = self.memory.lock();
        let mark = memory.values.get(&key);
        Ok(matches!(mark, Some(Value::Cancelled(until)) if *until > Instant::now()))
    }

    async fn keep_snapshot(&self, thread: &ThreadRef, snapshot: Snapshot) -> Result<(), BusError> {
        let key = Key::Snapshot(thread.clone());
        let mut memory = self.memory.lock();
        let newer = matches!(
            memory.values.get(&key),
            Some(Value::Snapshot(kept)) if kept.sequence > snapshot.sequence
        );
        if !newer {
            memory.set(key, Some(Value::Snapshot(snapshot)));
        }
        Ok(())
    }

    async fn snapshot(&self, thread: &ThreadRef) -> Result<Option<Snapshot>, BusError> {
        match self.memory.lock().values.get(&Key::Snapshot(thread.clone())) {
            Some(Value::Snapshot(snapshot)) => Ok(Some(snapshot.clone())),
            _ => Ok(None),
        }
    }

    async fn keep_turn_text(&self, thread: &ThreadRef, text: TurnText) -> Result<(), BusError> {
        let key = Key::Text(thread.clone());
        let mut memory = self.memory.lock();
        let later = matches!(
            memory.values.get(&key),
            Some(Value::Text(kept)) if kept.started > text.started
        );
        if !later {
            memory.set(key, Some(Value::Text(text)));
        }
        Ok(())
    }

    async fn turn_text(&self, thread: &ThreadRef) -> Result<Option<TurnText>, BusError> {
        match self.memory.lock().values.get(&Key::Text(thread.clone())) {
            Some(Value::Text(text)) => Ok(Some(text.clone())),
            _ => Ok(None),
        }
    }

    async fn add_samples(
        &self,
        tool: &ToolName,
        samples: &[Sample],
        window: Duration,
    ) -> Result<(), BusError> {
        let mut memory = self.memory.lock();
        let mut kept = [memory.samples(tool).as_slice(), samples].concat();
        kept.sort_by_key(|sample| sample.at);
        let newest = kept.last().map_or_else(Timestamp::default, |newest| newest.at);
        kept.retain(|sample| newest.0.saturating_sub(sample.at.0) <= millis(window));
        memory.set(Key::Samples(tool.clone()), Some(Value::Samples(kept)));
        Ok(())
    }

    async fn samples(&self, tool: &ToolName) -> Result<Vec<Sample>, BusError> {
        Ok(self.memory.lock().samples(tool))
    }

    async fn take_probe(
        &self,
        tool: &ToolName,
        holder: &InstanceId,
        lease: Duration,
    ) -> Result<bool, BusError> {
        let key = Key::Probe(tool.clone());
        Ok(self.memory.lock().take_lease(key, holder, lease) == Claim::Won)
    }

    async fn join_read(
        &self,
        key: &ReadKey,
        by: &str,
        lease: Duration,
        not_before: Timestamp,
    ) -> Result<Joined, BusError> {
        Ok(self.reads.lock().join(key, by, lease, not_before, self.now()))
    }

    async fn keep_read(
        &self,
        key: &ReadKey,
        by: &str,
        read: KeptRead,
        keep: Duration,
    ) -> Result<(), BusError> {
        self.reads.lock().keep(key, by, read, keep, self.now());
        Ok(())
    }

    async fn kept_read(&self, key: &ReadKey) -> Result<Option<KeptRead>, BusError> {
        Ok(self.reads.lock().kept(key, self.now()))
    }

    async fn leave_read(&self, key: &ReadKey, by: &str) -> Result<(), BusError> {
        self.reads.lock().leave(key, by);
        Ok(())
    }

    async fn take_place(
        &self,
        tool: &ToolName,
        who: &str,
        most: u32,
        lease: Duration,
    ) -> Result<Option<Duration>, BusError> {
        Ok(self.reads.lock().take_place(tool, who, most, lease, self.now()))
    }

    async fn leave_place(&self, tool: &ToolName, who: &str) -> Result<(), BusError> {
        self.reads.lock().leave_place(tool, who);
        Ok(())
    }

    async fn set_active(
        &self,
        thread: &ThreadRef,
        deadline: Option<Timestamp>,
    ) -> Result<(), BusError> {
        let key = Key::Active(thread.clone());
        self.memory.lock().set(key, deadline.map(Value::Active));
        Ok(())
    }

    async fn active(&self, until: Timestamp, limit: usize) -> Result<Vec<ThreadRef>, BusError> {
        let mut found = self.memory.lock().active(until);
        found.truncate(limit);
        Ok(found.into_iter().map(|(_, thread)| thread).collect())
    }
}

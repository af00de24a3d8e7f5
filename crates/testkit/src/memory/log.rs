//! Records, fences, deduplication and schedules.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ports::journal::{Append, AppendError, Appended, Fence, Stored};
use ports::queues::Queue;
use proto::envelope::Envelope;
use proto::ids::{Nonce, Partition, Sequence, TenantId, ThreadRef};
use proto::record::Record;
use proto::subject::{Leaf, Subject};
use proto::time::Timestamp;
use tokio::sync::Notify;

use super::consumers::Consumers;
use super::faults::Firing;

/// What happens by itself at some time.
#[derive(Clone, Debug)]
enum Due {
    /// A schedule fires; `Some` if it is still the thread's own schedule.
    Fire { thread: ThreadRef, number: u64 },
    /// A tick that no schedule stands for any more.
    Stray { thread: ThreadRef },
    /// An append that was under way arrives.
    Land { append: Append },
}

#[derive(Clone, Debug)]
struct Schedule {
    at: Timestamp,
    sequence: Sequence,
    number: u64,
}

#[derive(Debug, Default)]
struct Thread {
    sequences: BTreeSet<Sequence>,
    last_plan: BTreeSet<Sequence>,
    by_leaf: BTreeMap<Leaf, BTreeSet<Sequence>>,
    schedule: Option<Schedule>,
}

#[derive(Debug, Default)]
struct Part {
    records: BTreeMap<Sequence, Arc<Stored>>,
    last: Sequence,
    last_at: Timestamp,
    dedup: BTreeMap<String, (Timestamp, Sequence)>,
}

#[derive(Debug)]
pub(super) struct Log {
    window: Duration,
    parts: BTreeMap<Partition, Part>,
    threads: BTreeMap<ThreadRef, Thread>,
    due: BTreeMap<(Timestamp, u64), Due>,
    numbers: u64,
    history: Vec<Arc<Stored>>,
    fresh: Vec<Arc<Stored>>,
    pub(super) consumers: Consumers,
}

impl Log {
    pub(super) fn new(window: Duration, ack_wait: Duration) -> Self {
        Self {
            window,
            parts: BTreeMap::new(),
            threads: BTreeMap::new(),
            due: BTreeMap::new(),
            numbers: 0,
            history: Vec::new(),
            fresh: Vec::new(),
            consumers: Consumers::new(ack_wait),
        }
    }

    /// Lets everything happen that is due by `now`, at its own time.
    pub(super) fn catch_up(&mut self, now: Timestamp) {
        while let Some(((at, _), due)) = pop_due(&mut self.due, now) {
            match due {
                Due::Fire { thread, number } => self.fire(&thread, number, at),
                Due::Stray { thread } => self.write_tick(&thread, at),
                Due::Land { append } => drop(self.append(append, at)),
            }
        }
    }

    /// When the next thing happens by itself.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.due.first_key_value().map(|((at, _), _)| *at)
    }

    /// Records written since the last call.
    pub(super) fn take_fresh(&mut self) -> Vec<Arc<Stored>> {
        mem::take(&mut self.fresh)
    }

    pub(super) fn history(&self, from: usize) -> Vec<Arc<Stored>> {
        self.history.get(from..).unwrap_or_default().to_vec()
    }

    pub(super) fn partitions(&self) -> Vec<Partition> {
        self.parts.keys().copied().collect()
    }

    pub(super) fn append(
        &mut self,
        append: Append,
        now: Timestamp,
    ) -> Result<Appended, AppendError> {
        let window = self.window;
        let part = self.parts.entry(append.subject.thread.partition).or_default();
        if let Some(id) = &append.dedup {
            part.dedup.retain(|_, (at, _)| now.since(*at) < window);
            if let Some((_, sequence)) = part.dedup.get(id) {
                return Ok(Appended { sequence: *sequence, duplicate: true });
            }
        }
        self.check(&append.subject, append.fence)?;
        let dedup = append.dedup.clone();
        let partition = append.subject.thread.partition;
        let sequence = self.write(append.subject, append.payload, now);
        if let (Some(id), Some(part)) = (dedup, self.parts.get_mut(&partition)) {
            part.dedup.insert(id, (now, sequence));
        }
        Ok(Appended { sequence, duplicate: false })
    }

    /// The append arrives at `at`, whoever still waits for it.
    pub(super) fn land_later(&mut self, append: Append, at: Timestamp) {
        self.plan_due(at, Due::Land { append });
    }

    fn check(&self, subject: &Subject, fence: Fence) -> Result<(), AppendError> {
        let thread = self.threads.get(&subject.thread);
        let (expected, last) = match fence {
            Fence::None => return Ok(()),
            Fence::Plan(expected) => (expected, thread.and_then(|t| t.last_plan.last().copied())),
            Fence::Subject(expected) => (expected, thread.and_then(|t| t.last_of(&subject.leaf))),
        };
        let last = last.unwrap_or(Sequence::NONE);
        if expected == last { Ok(()) } else { Err(AppendError::Fenced { last: Some(last) }) }
    }

    fn write(&mut self, subject: Subject, payload: Bytes, now: Timestamp) -> Sequence {
        let part = self.parts.entry(subject.thread.partition).or_default();
        part.last = part.last.next();
        part.last_at = part.last_at.max(now);
        let stored = Arc::new(Stored { sequence: part.last, subject, at: part.last_at, payload });
        part.records.insert(stored.sequence, Arc::clone(&stored));
        let thread = self.threads.entry(stored.subject.thread.clone()).or_default();
        thread.add(&stored);
        self.consumers.arrived(&stored);
        self.history.push(Arc::clone(&stored));
        self.fresh.push(Arc::clone(&stored));
        stored.sequence
    }

    pub(super) fn read(&self, thread: &ThreadRef, from: Sequence, until: usize) -> Vec<Stored> {
        let Some(index) = self.threads.get(thread) else { return Vec::new() };
        let Some(part) = self.parts.get(&thread.partition) else { return Vec::new() };
        let places = index.sequences.range(from..).take(until);
        places.filter_map(|place| part.records.get(place)).map(|s| Stored::clone(s)).collect()
    }

    pub(super) fn facts(&self, partition: Partition, from: Sequence, limit: usize) -> Vec<Stored> {
        let Some(part) = self.parts.get(&partition) else { return Vec::new() };
        let records = part.records.range(from..).map(|(_, stored)| stored);
        let facts = records.filter(|stored| stored.subject.leaf == Leaf::Fact);
        facts.take(limit).map(|stored| Stored::clone(stored)).collect()
    }

    /// How many records from `from` on a replica serves that misses the newest `behind`, but none
    /// up to `floor`.
    pub(super) fn visible(
        &self,
        thread: &ThreadRef,
        from: Sequence,
        floor: Sequence,
        behind: usize,
    ) -> usize {
        let Some(index) = self.threads.get(thread) else { return 0 };
        let all = index.sequences.range(from..).count();
        let demanded = if floor < from { 0 } else { index.sequences.range(from..=floor).count() };
        all.saturating_sub(behind).max(demanded)
    }

    pub(super) fn last(&self, subject: &Subject) -> Option<Stored> {
        let sequence = self.threads.get(&subject.thread)?.last_of(&subject.leaf)?;
        let part = self.parts.get(&subject.thread.partition)?;
        part.records.get(&sequence).map(|stored| Stored::clone(stored))
    }

    /// Sets the schedule; what becomes of it was decided before.
    pub(super) fn schedule(
        &mut self,
        thread: &ThreadRef,
        at: Timestamp,
        fence: Fence,
        firing: Firing,
    ) -> Result<(), AppendError> {
        self.check(&Subject::new(thread.clone(), Leaf::Schedule), fence)?;
        let part = self.parts.entry(thread.partition).or_default();
        part.last = part.last.next();
        let sequence = part.last;
        let number = match firing {
            Firing::Early(by) => self.plan_firing(thread, at.before(by)),
            Firing::OnTime => self.plan_firing(thread, at),
            Firing::Twice(later) => {
                self.plan_due(at.after(later), Due::Stray { thread: thread.clone() });
                self.plan_firing(thread, at)
            }
            Firing::Never => self.numbers,
        };
        let index = self.threads.entry(thread.clone()).or_default();
        index.schedule = Some(Schedule { at, sequence, number });
        self.consumers.wake(thread.partition);
        Ok(())
    }

    fn plan_firing(&mut self, thread: &ThreadRef, at: Timestamp) -> u64 {
        let number = self.numbers;
        self.plan_due(at, Due::Fire { thread: thread.clone(), number });
        number
    }

    fn plan_due(&mut self, at: Timestamp, due: Due) {
        self.due.insert((at, self.numbers), due);
        self.numbers += 1;
    }

    pub(super) fn scheduled(&self, thread: &ThreadRef) -> Option<Timestamp> {
        self.threads.get(thread)?.schedule.as_ref().map(|schedule| schedule.at)
    }

    fn fire(&mut self, thread: &ThreadRef, number: u64, at: Timestamp) {
        let Some(index) = self.threads.get_mut(thread) else { return };
        if index.schedule.as_ref().is_none_or(|schedule| schedule.number != number) {
            return;
        }
        index.schedule = None;
        self.write_tick(thread, at);
    }

    fn write_tick(&mut self, thread: &ThreadRef, at: Timestamp) {
        let nonce = Nonce::new(format!("{:016x}", self.history.len())).expect("sixteen hex digits");
        let payload = Envelope::new(nonce, None, Record::Tick).encode();
        self.write(Subject::new(thread.clone(), Leaf::Tick), payload.into(), at);
    }

    pub(super) fn drop_schedule(&mut self, thread: &ThreadRef) -> bool {
        self.threads.get_mut(thread).and_then(|index| index.schedule.take()).is_some()
    }

    pub(super) fn fire_now(&mut self, thread: &ThreadRef, keep: bool, now: Timestamp) -> bool {
        let armed = self.scheduled(thread).is_some();
        if armed {
            if !keep {
                self.drop_schedule(thread);
            }
            self.write_tick(thread, now);
        }
        armed
    }

    pub(super) fn purge(&mut self, thread: &ThreadRef, up_to: Sequence) {
        let Some(index) = self.threads.get_mut(thread) else { return };
        let gone = index.remove(up_to);
        if let Some(part) = self.parts.get_mut(&thread.partition) {
            for sequence in &gone {
                part.records.remove(sequence);
            }
        }
        self.consumers.purged(thread.partition, &gone);
        if index.is_empty() {
            self.threads.remove(thread);
        }
    }

    /// The newest `count` records of a partition are gone with all that was remembered of them; their
    /// numbers are used again.
    pub(super) fn lose_tail(&mut self, partition: Partition, count: usize) -> Vec<Arc<Stored>> {
        let Some(part) = self.parts.get_mut(&partition) else { return Vec::new() };
        let first = part.records.len().saturating_sub(count);
        let Some(from) = part.records.keys().nth(first).copied() else { return Vec::new() };
        let lost = part.records.split_off(&from);
        part.last = Sequence(from.0 - 1);
        part.dedup.retain(|_, (_, sequence)| *sequence < from);
        let threads = self.threads.iter_mut().filter(|(thread, _)| thread.partition == partition);
        for (_, index) in threads {
            index.lose(from);
        }
        self.consumers.purged(partition, &lost.keys().copied().collect());
        lost.into_values().collect()
    }

    pub(super) fn threads(&self, tenant: &TenantId, limit: usize) -> Vec<ThreadRef> {
        let mut found: Vec<_> = self
            .threads
            .iter()
            .filter(|(thread, index)| thread.tenant == *tenant && !index.sequences.is_empty())
            .map(|(thread, _)| thread.clone())
            .collect();
        found.sort_by_key(|thread| Reverse(thread.thread));
        found.truncate(limit);
        found
    }

    /// Makes sure that the queue exists and has all records that it covers.
    /// Answers with the notice of what changes there.
    pub(super) fn open(&mut self, queue: &Queue) -> Arc<Notify> {
        if !self.consumers.exists(queue) {
            self.recreate(queue);
        }
        self.consumers.changes(queue)
    }

    pub(super) fn recreate(&mut self, queue: &Queue) -> usize {
        let (Queue::Inbox(partition) | Queue::Progress(partition) | Queue::Tool(partition, _)) =
            queue;
        let records = self.parts.get(partition).map(|part| &part.records);
        self.consumers.create(queue, records.into_iter().flat_map(BTreeMap::values))
    }
}

fn pop_due(
    due: &mut BTreeMap<(Timestamp, u64), Due>,
    now: Timestamp,
) -> Option<((Timestamp, u64), Due)> {
    let first = due.first_entry()?;
    (first.key().0 <= now).then(|| first.remove_entry())
}

impl Thread {
    fn add(&mut self, stored: &Stored) {
        let leaf = &stored.subject.leaf;
        self.sequences.insert(stored.sequence);
        if leaf.is_plan() {
            self.last_plan.insert(stored.sequence);
        }
        if let Some(places) = self.by_leaf.get_mut(leaf) {
            places.insert(stored.sequence);
        } else {
            self.by_leaf.insert(leaf.clone(), BTreeSet::from([stored.sequence]));
        }
    }

    fn last_of(&self, leaf: &Leaf) -> Option<Sequence> {
        match leaf {
            Leaf::Schedule => self.schedule.as_ref().map(|schedule| schedule.sequence),
            Leaf::In
            | Leaf::Fact
            | Leaf::ToolCall(_)
            | Leaf::Start(_)
            | Leaf::Observation
            | Leaf::Tick => self.by_leaf.get(leaf).and_then(|places| places.last().copied()),
        }
    }

    fn remove(&mut self, up_to: Sequence) -> BTreeSet<Sequence> {
        let kept = self.sequences.split_off(&up_to.next());
        let gone = mem::replace(&mut self.sequences, kept);
        self.last_plan = self.last_plan.split_off(&up_to.next());
        for places in self.by_leaf.values_mut() {
            *places = places.split_off(&up_to.next());
        }
        self.schedule.take_if(|schedule| schedule.sequence <= up_to);
        gone
    }

    fn lose(&mut self, from: Sequence) {
        drop(self.sequences.split_off(&from));
        drop(self.last_plan.split_off(&from));
        for places in self.by_leaf.values_mut() {
            drop(places.split_off(&from));
        }
        self.schedule.take_if(|schedule| schedule.sequence >= from);
    }

    fn is_empty(&self) -> bool {
        self.sequences.is_empty() && self.schedule.is_none()
    }
}

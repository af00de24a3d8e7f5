//! Deliveries: ready, held or resting.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use ports::journal::Stored;
use ports::queues::{Delivery, DeliveryToken, Queue};
use proto::ids::{Partition, Sequence, ThreadRef};
use proto::subject::Leaf;
use proto::time::Timestamp;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Where a record that is not acked stands.
#[derive(Clone, Copy, Debug)]
enum Place {
    Ready,
    Resting(Instant),
    Held { number: u64, until: Instant },
}

#[derive(Debug)]
struct Open {
    stored: Arc<Stored>,
    place: Place,
    count: u64,
}

/// A durable pull consumer.
#[derive(Debug)]
struct Consumer {
    index: usize,
    open: BTreeMap<Sequence, Open>,
    acked: Vec<(Timestamp, Arc<Stored>, u64)>,
    changed: Arc<Notify>,
}

#[derive(Debug)]
pub(super) struct Consumers {
    ack_wait: Duration,
    by_queue: BTreeMap<Queue, Consumer>,
    numbers: u64,
}

/// What a pull found.
pub(super) struct Taken {
    pub(super) deliveries: Vec<Delivery>,
    /// When something that rests or is held becomes ready.
    pub(super) next: Instant,
}

/// How a pull takes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Manner {
    pub(super) newest_first: bool,
    pub(super) twice: bool,
}

fn covers(queue: &Queue, stored: &Stored) -> bool {
    let partition = stored.subject.thread.partition;
    match (queue, &stored.subject.leaf) {
        (Queue::Inbox(p), Leaf::In) | (Queue::Progress(p), Leaf::Observation | Leaf::Tick) => {
            *p == partition
        }
        (Queue::Tool(p, name), Leaf::ToolCall(tool)) => *p == partition && name == tool,
        (Queue::Inbox(_) | Queue::Progress(_) | Queue::Tool(..), _) => false,
    }
}

impl Consumers {
    pub(super) fn new(ack_wait: Duration) -> Self {
        Self { ack_wait, by_queue: BTreeMap::new(), numbers: 0 }
    }

    pub(super) fn queues(&self) -> Vec<Queue> {
        self.by_queue.keys().cloned().collect()
    }

    pub(super) fn exists(&self, queue: &Queue) -> bool {
        self.by_queue.contains_key(queue)
    }

    pub(super) fn changes(&self, queue: &Queue) -> Arc<Notify> {
        self.by_queue.get(queue).map_or_else(Arc::default, |consumer| Arc::clone(&consumer.changed))
    }

    pub(super) fn create<'a>(
        &mut self,
        queue: &Queue,
        records: impl Iterator<Item = &'a Arc<Stored>>,
    ) -> usize {
        let known = self.by_queue.remove(queue);
        let index = known.as_ref().map_or(self.by_queue.len(), |consumer| consumer.index);
        let changed = known.map_or_else(Arc::default, |consumer| consumer.changed);
        let mut consumer = Consumer { index, open: BTreeMap::new(), acked: Vec::new(), changed };
        for stored in records.filter(|stored| covers(queue, stored)) {
            consumer.put(Arc::clone(stored), 0);
        }
        let count = consumer.open.len();
        consumer.changed.notify_waiters();
        self.by_queue.insert(queue.clone(), consumer);
        count
    }

    pub(super) fn arrived(&mut self, stored: &Arc<Stored>) {
        for (queue, consumer) in &mut self.by_queue {
            if covers(queue, stored) {
                consumer.put(Arc::clone(stored), 0);
                consumer.changed.notify_waiters();
            }
        }
    }

    /// Lets waiting pulls of a partition look again when they have to wake.
    pub(super) fn wake(&self, partition: Partition) {
        for (queue, consumer) in &self.by_queue {
            if matches!(queue, Queue::Progress(p) if *p == partition) {
                consumer.changed.notify_waiters();
            }
        }
    }

    pub(super) fn purged(&mut self, partition: Partition, gone: &BTreeSet<Sequence>) {
        for (queue, consumer) in &mut self.by_queue {
            let (Queue::Inbox(p) | Queue::Progress(p) | Queue::Tool(p, _)) = queue;
            if *p == partition {
                consumer.open.retain(|sequence, _| !gone.contains(sequence));
                consumer.acked.retain(|(_, stored, _)| !gone.contains(&stored.sequence));
            }
        }
    }

    /// Takes up to `max` deliveries. The queue has to exist.
    pub(super) fn take(&mut self, queue: &Queue, max: usize, manner: Manner) -> Option<Taken> {
        let now = Instant::now();
        let until = now + self.ack_wait;
        let consumer = self.by_queue.get_mut(queue)?;
        let mut ready = consumer.ready(now);
        if manner.newest_first {
            ready.reverse();
        }
        ready.truncate(max);
        let mut deliveries = Vec::new();
        for sequence in ready {
            self.numbers += 1;
            deliveries.extend(consumer.hand_out(sequence, self.numbers, until, manner.twice));
        }
        let next = consumer.open.values().filter_map(|open| open.place.wakes()).min();
        // Whatever somebody takes from here on is free again one ack wait later at the earliest.
        Some(Taken { deliveries, next: next.map_or(until, |next| next.min(until)) })
    }

    /// Answers with the record if it was open.
    pub(super) fn ack(
        &mut self,
        token: &DeliveryToken,
        now: Timestamp,
    ) -> Option<(Queue, Arc<Stored>)> {
        let (index, sequence, _) = parse(token)?;
        let (queue, consumer) = self.by_index(index)?;
        let open = consumer.open.remove(&sequence)?;
        consumer.acked.push((now, Arc::clone(&open.stored), open.count));
        Some((queue, open.stored))
    }

    pub(super) fn nak(&mut self, token: &DeliveryToken, delay: Duration) {
        let Some((index, sequence, number)) = parse(token) else { return };
        let Some((_, consumer)) = self.by_index(index) else { return };
        let Some(open) = consumer.held_mut(sequence, number) else { return };
        open.place = Place::Resting(Instant::now() + delay);
        consumer.changed.notify_waiters();
    }

    pub(super) fn progress(&mut self, token: &DeliveryToken) {
        let until = Instant::now() + self.ack_wait;
        let Some((index, sequence, number)) = parse(token) else { return };
        let Some((_, consumer)) = self.by_index(index) else { return };
        if let Some(open) = consumer.held_mut(sequence, number) {
            open.place = Place::Held { number, until };
        }
    }

    pub(super) fn forget_acks(&mut self, since: Timestamp) -> usize {
        let mut forgotten = 0;
        for consumer in self.by_queue.values_mut() {
            let acked = std::mem::take(&mut consumer.acked);
            let (lost, kept): (Vec<_>, Vec<_>) =
                acked.into_iter().partition(|(at, ..)| *at >= since);
            consumer.acked = kept;
            forgotten += lost.len();
            for (_, stored, count) in lost {
                consumer.put(stored, count);
            }
            consumer.changed.notify_waiters();
        }
        forgotten
    }

    pub(super) fn has_unacked(&self, thread: &ThreadRef) -> bool {
        self.by_queue
            .iter()
            .filter(|(queue, _)| !matches!(queue, Queue::Tool(..)))
            .flat_map(|(_, consumer)| consumer.open.values())
            .any(|open| open.stored.subject.thread == *thread)
    }

    pub(super) fn unacked(&self) -> Vec<(Queue, Arc<Stored>)> {
        let each = |(queue, consumer): (&Queue, &Consumer)| {
            let open = consumer.open.values();
            open.map(|open| (queue.clone(), Arc::clone(&open.stored))).collect::<Vec<_>>()
        };
        self.by_queue.iter().flat_map(each).collect()
    }

    fn by_index(&mut self, index: usize) -> Option<(Queue, &mut Consumer)> {
        let found = self.by_queue.iter_mut().find(|(_, consumer)| consumer.index == index)?;
        Some((found.0.clone(), found.1))
    }
}

impl Place {
    fn is_free(self, now: Instant) -> bool {
        self.wakes().is_none_or(|at| at <= now)
    }

    fn wakes(self) -> Option<Instant> {
        match self {
            Self::Ready => None,
            Self::Resting(at) | Self::Held { until: at, .. } => Some(at),
        }
    }
}

impl Consumer {
    fn put(&mut self, stored: Arc<Stored>, count: u64) {
        let sequence = stored.sequence;
        self.open.entry(sequence).or_insert(Open { stored, place: Place::Ready, count });
    }

    fn ready(&self, now: Instant) -> Vec<Sequence> {
        let free = self.open.iter().filter(|(_, open)| open.place.is_free(now));
        free.map(|(sequence, _)| *sequence).collect()
    }

    fn hand_out(
        &mut self,
        sequence: Sequence,
        number: u64,
        until: Instant,
        twice: bool,
    ) -> Option<Delivery> {
        let open = self.open.get_mut(&sequence)?;
        open.count += 1;
        open.place = if twice { Place::Ready } else { Place::Held { number, until } };
        let token = DeliveryToken(format!("{}.{}.{number}", self.index, sequence.0));
        Some(Delivery { stored: Stored::clone(&open.stored), token, count: open.count })
    }

    /// The record, if the delivery with this number still holds it.
    fn held_mut(&mut self, sequence: Sequence, number: u64) -> Option<&mut Open> {
        self.open.get_mut(&sequence).filter(
            |open| matches!(open.place, Place::Held { number: holder, .. } if holder == number),
        )
    }
}

fn parse(token: &DeliveryToken) -> Option<(usize, Sequence, u64)> {
    let mut parts = token.0.split('.');
    let index = parts.next()?.parse().ok()?;
    let sequence = Sequence(parts.next()?.parse().ok()?);
    let number = parts.next()?.parse().ok()?;
    Some((index, sequence, number))
}

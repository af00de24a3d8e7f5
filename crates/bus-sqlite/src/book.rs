//! Who holds which delivery. All of it is in memory: only the fact that a record is not acked yet
//! is in the file.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use ports::journal::Stored;
use ports::queues::{DeliveryToken, Queue};
use proto::ids::Sequence;
use proto::subject::{Leaf, Subject};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::guarded::Guarded;

/// Bytes of fresh payloads that are kept, so that a waiting puller needs no read.
const FRESH_BYTES: usize = 32 * 1024 * 1024;
/// Stands for "longer than anybody waits".
const FAR: Duration = Duration::from_hours(24 * 365);

/// The queue that a subject's records go to.
pub(crate) fn queue_of(subject: &Subject) -> Option<Queue> {
    let partition = subject.thread.partition;
    match &subject.leaf {
        Leaf::In => Some(Queue::Inbox(partition)),
        Leaf::Observation | Leaf::Tick => Some(Queue::Progress(partition)),
        Leaf::ToolCall(tool) => Some(Queue::Tool(partition, tool.clone())),
        Leaf::Fact | Leaf::Start(_) | Leaf::Schedule => None,
    }
}

/// The moment `span` after `now`.
pub(crate) fn later(now: Instant, span: Duration) -> Instant {
    now.checked_add(span.min(FAR)).unwrap_or(now)
}

/// Where a record that is not acked stands.
#[derive(Debug)]
enum Place {
    /// Free to be taken; with its content, if that is still at hand.
    Ready(Option<Stored>),
    /// Free again at `until`: held by the delivery `number`, or resting if that is `None`.
    Out { until: Instant, number: Option<u64> },
}

#[derive(Debug)]
struct Entry {
    queue: Arc<Queue>,
    count: u64,
    place: Place,
}

/// One queue's records, by place.
#[derive(Debug)]
struct Line {
    queue: Arc<Queue>,
    ready: BTreeSet<Sequence>,
    out: BTreeSet<(Instant, Sequence)>,
    wake: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Pages {
    entries: BTreeMap<Sequence, Entry>,
    lines: BTreeMap<Queue, Line>,
    numbers: u64,
    fresh_bytes: usize,
}

/// One record that a puller took.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    pub(crate) sequence: Sequence,
    pub(crate) number: u64,
    pub(crate) count: u64,
    /// The record, if it was at hand.
    pub(crate) stored: Option<Stored>,
}

impl Taken {
    pub(crate) fn token(&self) -> DeliveryToken {
        DeliveryToken(format!("{}.{}", self.sequence, self.number))
    }
}

/// What a puller found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) taken: Vec<Taken>,
    /// When the next record becomes free by itself.
    pub(crate) next: Option<Instant>,
}

/// All deliveries of the bus.
#[derive(Debug)]
pub(crate) struct Book {
    pages: Guarded<Pages>,
    /// Acks that are not written yet.
    acked: Guarded<Vec<Sequence>>,
    ack_wait: Duration,
}

impl Book {
    /// A book in which all of `pending` is ready.
    pub(crate) fn new(ack_wait: Duration, pending: Vec<(Sequence, Queue)>) -> Self {
        let mut pages = Pages::default();
        for (sequence, queue) in pending {
            pages.put(sequence, &queue, None);
        }
        Self { pages: Guarded::new(pages), acked: Guarded::default(), ack_wait }
    }

    pub(crate) fn ack_wait(&self) -> Duration {
        self.ack_wait
    }

    /// Takes in what a commit brought and takes out what it removed, then wakes who waits.
    pub(crate) fn changed(&self, delivered: Vec<Stored>, removed: &[Sequence]) {
        if delivered.is_empty() && removed.is_empty() {
            return;
        }
        self.pages.with(|pages| {
            for stored in delivered {
                if let Some(queue) = queue_of(&stored.subject) {
                    pages.put(stored.sequence, &queue, Some(stored));
                }
            }
            for sequence in removed {
                pages.remove(*sequence);
            }
        });
    }

    /// Tells when a queue should be looked at again.
    pub(crate) fn wake(&self, queue: &Queue) -> Arc<Notify> {
        self.pages.with(|pages| Arc::clone(&pages.line(queue).wake))
    }

    /// Hands out up to `max` records of a queue, the oldest first.
    pub(crate) fn take(&self, queue: &Queue, max: usize, now: Instant) -> Found {
        let until = later(now, self.ack_wait);
        self.pages.with(|pages| {
            pages.free_due(queue, now);
            let ready = pages.line(queue).ready.iter().take(max).copied().collect::<Vec<_>>();
            let taken = ready.into_iter().filter_map(|s| pages.hand_out(s, until)).collect();
            let next = pages.line(queue).out.first().map(|(at, _)| *at);
            Found { taken, next }
        })
    }

    /// The record is done, whoever says so. Answers whether it is the first ack that waits to be
    /// written.
    pub(crate) fn ack(&self, token: &DeliveryToken) -> bool {
        let Some((sequence, _)) = parse(token) else { return false };
        if !self.pages.with(|pages| pages.remove(sequence)) {
            return false;
        }
        self.acked.with(|acked| {
            acked.push(sequence);
            acked.len() == 1
        })
    }

    /// Takes the acks that wait to be written.
    pub(crate) fn take_acked(&self) -> Vec<Sequence> {
        self.acked.with(std::mem::take)
    }

    /// These acks could not be written.
    pub(crate) fn put_acked_back(&self, unwritten: Vec<Sequence>) {
        self.acked.with(|acked| acked.extend(unwritten));
    }

    /// The holder gives the record back until `until`.
    pub(crate) fn nak(&self, token: &DeliveryToken, until: Instant) {
        let Some((sequence, number)) = parse(token) else { return };
        self.pages.with(|pages| {
            if let Some(wake) = pages.move_held(sequence, number, until, None) {
                wake.notify_waiters();
            }
        });
    }

    /// The holder still works.
    pub(crate) fn progress(&self, token: &DeliveryToken, now: Instant) {
        let Some((sequence, number)) = parse(token) else { return };
        let until = later(now, self.ack_wait);
        self.pages.with(|pages| pages.move_held(sequence, number, until, Some(number)));
    }

    /// Takes back what never reached its puller, as if it had not been handed out.
    pub(crate) fn untake(&self, taken: &Taken, now: Instant) {
        self.pages.with(|pages| {
            let moved = pages.move_held(taken.sequence, taken.number, now, None);
            if let Some(entry) = pages.entries.get_mut(&taken.sequence)
                && let Some(wake) = moved
            {
                entry.count = entry.count.saturating_sub(1);
                wake.notify_waiters();
            }
        });
    }

    /// The record is no longer in the journal.
    pub(crate) fn forget(&self, sequence: Sequence) {
        self.pages.with(|pages| pages.remove(sequence));
    }
}

fn parse(token: &DeliveryToken) -> Option<(Sequence, u64)> {
    let (sequence, number) = token.0.split_once('.')?;
    Some((Sequence(sequence.parse().ok()?), number.parse().ok()?))
}

impl Pages {
    fn line(&mut self, queue: &Queue) -> &mut Line {
        // A look before the insert saves a clone of the name in the common case.
        if !self.lines.contains_key(queue) {
            self.lines.insert(queue.clone(), Line::new(queue));
        }
        self.lines.entry(queue.clone()).or_insert_with(|| Line::new(queue))
    }

    fn put(&mut self, sequence: Sequence, queue: &Queue, stored: Option<Stored>) {
        let kept = stored
            .filter(|stored| self.fresh_bytes.saturating_add(stored.payload.len()) <= FRESH_BYTES);
        self.fresh_bytes =
            self.fresh_bytes.saturating_add(kept.as_ref().map_or(0, |stored| stored.payload.len()));
        let line = self.lines.entry(queue.clone()).or_insert_with(|| Line::new(queue));
        line.ready.insert(sequence);
        line.wake.notify_waiters();
        let queue = Arc::clone(&line.queue);
        self.entries.insert(sequence, Entry { queue, count: 0, place: Place::Ready(kept) });
    }

    fn remove(&mut self, sequence: Sequence) -> bool {
        let Some(entry) = self.entries.remove(&sequence) else { return false };
        let Some(line) = self.lines.get_mut(&entry.queue) else { return true };
        match entry.place {
            Place::Ready(stored) => {
                line.ready.remove(&sequence);
                self.used(stored.as_ref());
            }
            Place::Out { until, .. } => {
                line.out.remove(&(until, sequence));
            }
        }
        true
    }

    /// A kept payload leaves.
    fn used(&mut self, stored: Option<&Stored>) {
        let bytes = stored.map_or(0, |stored| stored.payload.len());
        self.fresh_bytes = self.fresh_bytes.saturating_sub(bytes);
    }

    /// What is held too long or has rested enough is free.
    fn free_due(&mut self, queue: &Queue, now: Instant) {
        let Some(line) = self.lines.get_mut(queue) else { return };
        while let Some((at, sequence)) = line.out.first().copied() {
            if at > now {
                return;
            }
            line.out.remove(&(at, sequence));
            line.ready.insert(sequence);
            if let Some(entry) = self.entries.get_mut(&sequence) {
                entry.place = Place::Ready(None);
            }
        }
    }

    fn hand_out(&mut self, sequence: Sequence, until: Instant) -> Option<Taken> {
        self.numbers = self.numbers.saturating_add(1);
        let number = self.numbers;
        let entry = self.entries.get_mut(&sequence)?;
        let held = Place::Out { until, number: Some(number) };
        let stored = match std::mem::replace(&mut entry.place, held) {
            Place::Ready(stored) => stored,
            Place::Out { .. } => None,
        };
        entry.count = entry.count.saturating_add(1);
        let count = entry.count;
        let line = self.lines.get_mut(&entry.queue)?;
        line.ready.remove(&sequence);
        line.out.insert((until, sequence));
        self.used(stored.as_ref());
        Some(Taken { sequence, number, count, stored })
    }

    /// Moves a record that the delivery `number` holds; answers whom to wake if it does.
    fn move_held(
        &mut self,
        sequence: Sequence,
        number: u64,
        to: Instant,
        then: Option<u64>,
    ) -> Option<Arc<Notify>> {
        let entry = self.entries.get_mut(&sequence)?;
        let Place::Out { until, number: holder } = &mut entry.place else { return None };
        if *holder != Some(number) {
            return None;
        }
        let line = self.lines.get_mut(&entry.queue)?;
        line.out.remove(&(*until, sequence));
        line.out.insert((to, sequence));
        *until = to;
        *holder = then;
        Some(Arc::clone(&line.wake))
    }
}

impl Line {
    fn new(queue: &Queue) -> Self {
        Self {
            queue: Arc::new(queue.clone()),
            ready: BTreeSet::new(),
            out: BTreeSet::new(),
            wake: Arc::new(Notify::new()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proto::ids::Partition;

    use super::*;

    const WAIT: Duration = Duration::from_secs(6);

    fn inbox() -> Queue {
        Queue::Inbox(Partition(0))
    }

    fn book(records: u64) -> Book {
        let pending = (1..=records).map(|n| (Sequence(n), inbox())).collect();
        Book::new(WAIT, pending)
    }

    fn taken(book: &Book, max: usize, now: Instant) -> Vec<(u64, u64)> {
        let found = book.take(&inbox(), max, now);
        found.taken.iter().map(|taken| (taken.sequence.0, taken.count)).collect()
    }

    fn token(sequence: u64, number: u64) -> DeliveryToken {
        DeliveryToken(format!("{sequence}.{number}"))
    }

    #[test]
    fn a_record_goes_to_one_puller_until_its_ack_wait_is_over() {
        let (book, now) = (book(2), Instant::now());
        assert_eq!(taken(&book, 1, now), [(1, 1)]);
        assert_eq!(taken(&book, 9, now), [(2, 1)]);
        assert_eq!(taken(&book, 9, now), []);
        assert_eq!(taken(&book, 9, now + WAIT), [(1, 2), (2, 2)]);
    }

    #[test]
    fn progress_of_the_holder_starts_the_ack_wait_anew() {
        let (book, now) = (book(1), Instant::now());
        taken(&book, 1, now);
        book.progress(&token(1, 1), now + WAIT / 2);
        assert_eq!(taken(&book, 1, now + WAIT), []);
        assert_eq!(taken(&book, 1, now + WAIT / 2 + WAIT), [(1, 2)]);
    }

    #[test]
    fn a_former_holder_neither_keeps_nor_gives_back_a_record() {
        let (book, now) = (book(1), Instant::now());
        taken(&book, 1, now);
        assert_eq!(taken(&book, 1, now + WAIT), [(1, 2)]);
        book.progress(&token(1, 1), now + WAIT * 9);
        book.nak(&token(1, 1), now);
        assert_eq!(taken(&book, 1, now + WAIT), []);
        assert_eq!(taken(&book, 1, now + WAIT * 2), [(1, 3)]);
    }

    #[test]
    fn a_former_holder_may_still_say_that_the_work_is_done() {
        let (book, now) = (book(1), Instant::now());
        taken(&book, 1, now);
        taken(&book, 1, now + WAIT);
        assert!(book.ack(&token(1, 1)));
        assert!(!book.ack(&token(1, 1)));
        assert_eq!(book.take_acked(), [Sequence(1)]);
        assert_eq!(taken(&book, 1, now + WAIT * 9), []);
    }

    #[test]
    fn what_is_given_back_rests_and_comes_again() {
        let (book, now) = (book(1), Instant::now());
        taken(&book, 1, now);
        book.nak(&token(1, 1), now + WAIT * 3);
        let found = book.take(&inbox(), 1, now + WAIT * 2);
        assert_eq!((found.taken.len(), found.next), (0, Some(now + WAIT * 3)));
        assert_eq!(taken(&book, 1, now + WAIT * 3), [(1, 2)]);
    }

    #[test]
    fn what_never_reached_its_puller_does_not_count() {
        let (book, now) = (book(1), Instant::now());
        let found = book.take(&inbox(), 1, now);
        book.untake(&found.taken[0], now);
        assert_eq!(taken(&book, 1, now), [(1, 1)]);
    }
}

//! Deliveries for pullers.

use std::time::Duration;

use async_trait::async_trait;
use ports::BusError;
use ports::journal::Stored;
use ports::queues::{Delivery, DeliveryToken, Queue, Queues};
use proto::ids::Sequence;
use rusqlite::Connection;
use tokio::time::{Instant, timeout_at};

use crate::SqliteBus;
use crate::book::{Book, Taken, later, queue_of};
use crate::rows::{STORED, all, from_sql, one, stored, strange, thread_at, to_sql};
use crate::writer::Message;

#[async_trait]
impl Queues for SqliteBus {
    fn ack_wait(&self) -> Duration {
        self.inner.book.ack_wait()
    }

    async fn pull(
        &self,
        queue: &Queue,
        max: usize,
        wait: Duration,
    ) -> Result<Vec<Delivery>, BusError> {
        let end = later(Instant::now(), wait);
        let wake = self.inner.book.wake(queue);
        loop {
            let mut woken = std::pin::pin!(wake.notified());
            woken.as_mut().enable();
            self.inner.writer.check_open()?;
            let found = self.inner.book.take(queue, max, Instant::now());
            if !found.taken.is_empty() {
                let deliveries = self.fill(Hand::new(&self.inner.book, found.taken)).await?;
                if !deliveries.is_empty() {
                    return Ok(deliveries);
                }
                // All of it was purged meanwhile; there may be more behind it.
                continue;
            }
            if Instant::now() >= end {
                return Ok(Vec::new());
            }
            // Woken or not, the queue is looked at again.
            timeout_at(found.next.map_or(end, |next| next.min(end)), woken).await.ok();
        }
    }

    async fn ack(&self, token: &DeliveryToken) -> Result<(), BusError> {
        if self.inner.book.ack(token) {
            self.inner.writer.send(Message::Behind)?;
        }
        Ok(())
    }

    async fn nak(&self, token: &DeliveryToken, delay: Duration) -> Result<(), BusError> {
        self.inner.book.nak(token, later(Instant::now(), delay));
        Ok(())
    }

    async fn progress(&self, tokens: &[DeliveryToken]) -> Result<(), BusError> {
        let now = Instant::now();
        for token in tokens {
            self.inner.book.progress(token, now);
        }
        Ok(())
    }
}

impl SqliteBus {
    /// Fetches the records that were not at hand; those that are gone are forgotten.
    async fn fill(&self, mut hand: Hand<'_>) -> Result<Vec<Delivery>, BusError> {
        let missing: Vec<Sequence> = hand.missing().collect();
        if !missing.is_empty() {
            let found = self.inner.readers.run(move |conn| fetch(conn, &missing)).await?;
            hand.complete(found);
        }
        Ok(hand.open())
    }
}

/// Records on their way to a puller; dropped on the way, they go back into the queue.
struct Hand<'a> {
    book: &'a Book,
    taken: Vec<Taken>,
}

impl<'a> Hand<'a> {
    fn new(book: &'a Book, taken: Vec<Taken>) -> Self {
        Self { book, taken }
    }

    fn missing(&self) -> impl Iterator<Item = Sequence> {
        self.taken.iter().filter(|taken| taken.stored.is_none()).map(|taken| taken.sequence)
    }

    fn complete(&mut self, found: Vec<Stored>) {
        let mut found = found.into_iter().peekable();
        for taken in self.taken.iter_mut().filter(|taken| taken.stored.is_none()) {
            taken.stored = found.next_if(|stored| stored.sequence == taken.sequence);
        }
    }

    fn open(mut self) -> Vec<Delivery> {
        let mut deliveries = Vec::new();
        for taken in std::mem::take(&mut self.taken) {
            let (token, count) = (taken.token(), taken.count);
            match taken.stored {
                Some(stored) => deliveries.push(Delivery { stored, token, count }),
                None => self.book.forget(taken.sequence),
            }
        }
        deliveries
    }
}

impl Drop for Hand<'_> {
    fn drop(&mut self) {
        let now = Instant::now();
        self.taken.iter().for_each(|taken| self.book.untake(taken, now));
    }
}

/// The records with these sequences, as far as they exist, in the order asked for.
fn fetch(conn: &Connection, sequences: &[Sequence]) -> rusqlite::Result<Vec<Stored>> {
    let sql = format!(
        "SELECT {STORED}, t.part, t.tenant, t.thread FROM records r
         JOIN threads t ON t.id = r.thread_id WHERE r.seq = ?1"
    );
    let mut found = Vec::new();
    for sequence in sequences {
        let row = one(conn, &sql, [to_sql(*sequence)], |row| stored(row, &thread_at(row, 4)?))?;
        found.extend(row);
    }
    Ok(found)
}

/// Every record without an ack, with its queue.
pub(crate) fn pending(conn: &Connection) -> rusqlite::Result<Vec<(Sequence, Queue)>> {
    let sql = "SELECT p.seq, r.leaf, t.part, t.tenant, t.thread FROM pending p
               JOIN records r ON r.seq = p.seq JOIN threads t ON t.id = r.thread_id
               ORDER BY p.seq";
    all(conn, sql, [], |row| {
        let thread = thread_at(row, 2)?;
        let leaf = row.get_ref(1)?.as_str()?;
        let subject = format!("{}.{leaf}", proto::subject::thread_prefix(&thread));
        let queue = subject.parse().ok().as_ref().and_then(queue_of);
        Ok((from_sql(row.get(0)?), queue.ok_or_else(|| strange(1, &"a subject without a queue"))?))
    })
}

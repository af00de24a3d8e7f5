//! Transactions of the writer: all of a batch in one, or, if that fails, each alone.

use std::sync::Arc;

use ports::BusError;
use ports::clock::{Clock, Ids};
use ports::journal::Stored;
use proto::ids::{Sequence, ThreadRef};
use proto::time::Timestamp;
use rusqlite::Connection;

use crate::book::Book;
use crate::fault::fault;
use crate::options::{Durability, Options};
use crate::recent::{Recent, Written};
use crate::writer::{Promise, Work};

/// What a transaction changes outside the file once it is committed.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    /// Records for the queues.
    pub(crate) delivered: Vec<Stored>,
    /// Every record that was written.
    pub(crate) written: Vec<Written>,
    /// Threads that lost records.
    pub(crate) purged: Vec<ThreadRef>,
    /// Records that the queues must forget.
    pub(crate) removed: Vec<Sequence>,
    /// The earliest schedule may be another one.
    pub(crate) schedules_changed: bool,
    /// Erased content must leave the write-ahead log too.
    pub(crate) scrub: bool,
}

/// A transaction under way.
pub(crate) struct Tx<'a> {
    pub(crate) conn: &'a Connection,
    pub(crate) effects: Effects,
    clock: &'a dyn Clock,
    pub(crate) ids: &'a dyn Ids,
}

impl Tx<'_> {
    /// The server's time.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

/// The writing connection and its transactions.
pub(crate) struct Committer {
    conn: Connection,
    book: Arc<Book>,
    recent: Arc<Recent>,
    durability: Durability,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    synced: bool,
}

impl Committer {
    /// Takes over a connection that syncs every commit.
    pub(crate) fn new(
        conn: Connection,
        book: Arc<Book>,
        recent: Arc<Recent>,
        options: &Options,
    ) -> Self {
        Self {
            conn,
            book,
            recent,
            durability: options.durability,
            clock: Arc::clone(&options.clock),
            ids: Arc::clone(&options.ids),
            synced: true,
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn conn(&self) -> &Connection {
        &self.conn
    }

    /// Executes `body` in a transaction, commits, and lets the queues know. Answers what the
    /// caller still has to do.
    pub(crate) fn transact(
        &mut self,
        promise: Promise,
        body: impl FnOnce(&mut Tx<'_>) -> rusqlite::Result<()>,
    ) -> rusqlite::Result<Effects> {
        self.set_sync(promise == Promise::Durable && self.durability == Durability::Full)?;
        let result = self.begin_to_commit(body);
        if result.is_err() && !self.conn.is_autocommit() {
            self.conn.execute_batch("ROLLBACK")?;
        }
        let mut effects = result?;
        let written = std::mem::take(&mut effects.written);
        self.recent.committed(written, &std::mem::take(&mut effects.purged));
        let delivered = std::mem::take(&mut effects.delivered);
        self.book.changed(delivered, &std::mem::take(&mut effects.removed));
        Ok(effects)
    }

    fn begin_to_commit(
        &self,
        body: impl FnOnce(&mut Tx<'_>) -> rusqlite::Result<()>,
    ) -> rusqlite::Result<Effects> {
        self.conn.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let mut tx = Tx {
            conn: &self.conn,
            effects: Effects::default(),
            clock: self.clock.as_ref(),
            ids: self.ids.as_ref(),
        };
        body(&mut tx)?;
        let effects = tx.effects;
        self.conn.prepare_cached("COMMIT")?.execute([])?;
        Ok(effects)
    }

    /// A soft commit leaves the log unsynced; the next durable one syncs both.
    fn set_sync(&mut self, synced: bool) -> rusqlite::Result<()> {
        if self.synced != synced {
            let level = if synced { "FULL" } else { "NORMAL" };
            self.conn.pragma_update(None, "synchronous", level)?;
            self.synced = synced;
        }
        Ok(())
    }

    /// Commits a batch and answers every caller in it. `also` is written along if nothing fails;
    /// answers whether it was.
    pub(crate) fn batch(
        &mut self,
        mut batch: Vec<Box<dyn Work>>,
        also: impl FnOnce(&Tx<'_>) -> rusqlite::Result<()>,
    ) -> (Effects, bool) {
        let together = self.transact(promise_of(&batch), |tx| {
            batch.iter_mut().try_for_each(|work| work.run(tx))?;
            also(tx)
        });
        match together {
            Ok(effects) => {
                for work in batch {
                    work.finish(Ok(()));
                }
                (effects, true)
            }
            Err(_) => (self.one_by_one(batch), false),
        }
    }

    /// One command that cannot be done does not take the others with it.
    fn one_by_one(&mut self, batch: Vec<Box<dyn Work>>) -> Effects {
        let mut all = Effects::default();
        for mut work in batch {
            let outcome = self.transact(work.promise(), |tx| work.run(tx));
            if let Ok(effects) = &outcome {
                all.schedules_changed |= effects.schedules_changed;
                all.scrub |= effects.scrub;
            }
            work.finish(outcome.map(drop).map_err(|error| note(&fault(&error))));
        }
        all
    }
}

fn promise_of(batch: &[Box<dyn Work>]) -> Promise {
    let durable = batch.iter().any(|work| work.promise() == Promise::Durable);
    if durable { Promise::Durable } else { Promise::Soft }
}

fn note(error: &BusError) -> BusError {
    tracing::warn!(%error, "a write to the store failed");
    error.clone()
}

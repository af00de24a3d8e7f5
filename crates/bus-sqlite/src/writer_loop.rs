//! What the writing thread does: batches of commands, and by itself what time brings: schedules
//! that are due, acks, text written behind, expired rows.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::Duration;

use ports::BusError;
use proto::ids::Sequence;
use proto::time::Timestamp;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::behind::Behind;
use crate::book::Book;
use crate::commit::{Committer, Effects, Tx};
use crate::fault::fault;
use crate::lock::FileLock;
use crate::rows::{run, to_sql};
use crate::writer::{Message, Promise, Work};
use crate::{schedules, working_memory};

/// Most commands in one transaction.
const BATCH_COMMANDS: usize = 512;
/// Most bytes in one transaction, unless one command is larger.
const BATCH_BYTES: usize = 2 * 1024 * 1024;
/// How long acks and text wait for a commit to ride on.
const WRITE_BEHIND: Duration = Duration::from_millis(200);
/// How often expired rows are removed.
const SWEEP: Duration = Duration::from_secs(30);
/// How soon the clock is looked at again while a schedule is armed; it may have jumped.
const LOOK: Duration = Duration::from_millis(200);
/// The pause after a write of the bus's own accord failed.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

/// Commands for one transaction.
#[derive(Default)]
struct Batch {
    works: Vec<Box<dyn Work>>,
    bytes: usize,
}

impl Batch {
    fn push(&mut self, work: Box<dyn Work>) {
        self.bytes = self.bytes.saturating_add(work.bytes());
        self.works.push(work);
    }

    fn has_room(&self) -> bool {
        self.works.len() < BATCH_COMMANDS && self.bytes < BATCH_BYTES
    }
}

/// The writing thread's state.
pub(crate) struct WriterLoop {
    inbox: Receiver<Message>,
    committer: Committer,
    book: Arc<Book>,
    behind: Arc<Behind>,
    lock: FileLock,
    next_tick: Option<Timestamp>,
    ticks_from: Instant,
    flush_at: Option<Instant>,
    sweep_at: Instant,
    closing: Option<oneshot::Sender<Result<(), BusError>>>,
    open: bool,
}

impl WriterLoop {
    pub(crate) fn new(
        inbox: Receiver<Message>,
        committer: Committer,
        book: Arc<Book>,
        behind: Arc<Behind>,
        lock: FileLock,
    ) -> rusqlite::Result<Self> {
        let next_tick = schedules::earliest(committer.conn())?;
        let now = Instant::now();
        Ok(Self {
            inbox,
            committer,
            book,
            behind,
            lock,
            next_tick,
            ticks_from: now,
            flush_at: None,
            sweep_at: now,
            closing: None,
            open: true,
        })
    }

    /// Works until the bus is closed or dropped; what waits is written before the end.
    pub(crate) fn run(mut self) {
        while self.open {
            let mut batch = Batch::default();
            match self.inbox.recv_timeout(self.patience()) {
                Ok(message) => self.take(message, &mut batch),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => self.open = false,
            }
            self.drain(&mut batch);
            if !batch.works.is_empty() {
                self.commit(batch.works);
            }
            self.on_time();
        }
        self.end();
    }

    fn take(&mut self, message: Message, batch: &mut Batch) {
        match message {
            Message::Work(work) => batch.push(work),
            Message::Behind => {
                self.flush_at.get_or_insert_with(|| Instant::now() + WRITE_BEHIND);
            }
            Message::Close(reply) => {
                self.closing = Some(reply);
                self.open = false;
            }
        }
    }

    /// Takes what is queued, as much as one transaction should hold.
    fn drain(&mut self, batch: &mut Batch) {
        while self.open && batch.has_room() {
            match self.inbox.try_recv() {
                Ok(message) => self.take(message, batch),
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => self.open = false,
            }
        }
    }

    fn commit(&mut self, batch: Vec<Box<dyn Work>>) {
        if let Err(error) = self.lock.check() {
            return batch.into_iter().for_each(|work| work.finish(Err(error.clone())));
        }
        let acked = self.book.take_acked();
        let (effects, all) = self.committer.batch(batch, |tx| settle(tx, &acked));
        if !all {
            self.book.put_acked_back(acked);
        }
        self.after(&effects);
    }

    fn after(&mut self, effects: &Effects) {
        if effects.schedules_changed {
            self.look_for_ticks();
        }
        if effects.scrub {
            self.checkpoint();
        }
    }

    fn look_for_ticks(&mut self) {
        match schedules::earliest(self.committer.conn()) {
            Ok(earliest) => self.next_tick = earliest,
            Err(error) => tracing::error!(%error, "schedules cannot be read"),
        }
    }

    /// How long to wait for the next message.
    fn patience(&self) -> Duration {
        let now = Instant::now();
        let until = |at: Instant| at.saturating_duration_since(now);
        let mut wait = until(self.sweep_at);
        if let Some(at) = self.flush_at {
            wait = wait.min(until(at));
        }
        if let Some(at) = self.next_tick {
            let left = at.since(self.committer.now()).min(LOOK);
            wait = wait.min(left.max(until(self.ticks_from)));
        }
        wait
    }

    fn on_time(&mut self) {
        let now = Instant::now();
        let due = self.next_tick.is_some_and(|at| at <= self.committer.now());
        if due && self.ticks_from <= now {
            self.fire();
        }
        if self.flush_at.is_some_and(|at| at <= now)
            && let Err(error) = self.flush()
        {
            tracing::warn!(%error, "acks and text wait in memory");
        }
        if self.sweep_at <= now {
            self.sweep();
        }
    }

    fn fire(&mut self) {
        let fired = self.committer.transact(Promise::Durable, schedules::fire);
        if let Err(error) = fired {
            tracing::warn!(%error, "a schedule that is due cannot be written");
            self.ticks_from = Instant::now() + AFTER_FAILURE;
        }
        self.look_for_ticks();
    }

    /// Writes acks and what else is kept in memory.
    fn flush(&mut self) -> Result<(), BusError> {
        self.flush_at = None;
        let dirty = self.behind.dirty();
        let acked = self.book.take_acked();
        let written = self.committer.transact(Promise::Soft, |tx| {
            settle(tx, &acked)?;
            dirty.write(tx.conn)
        });
        match written {
            Ok(_) => {
                self.behind.written(&dirty);
                Ok(())
            }
            Err(error) => {
                self.book.put_acked_back(acked);
                self.flush_at = Some(Instant::now() + AFTER_FAILURE);
                Err(fault(&error))
            }
        }
    }

    fn sweep(&mut self) {
        self.sweep_at = Instant::now() + SWEEP;
        if let Err(error) = self.committer.transact(Promise::Soft, working_memory::sweep) {
            tracing::warn!(%error, "expired rows stay");
        }
    }

    /// Moves the write-ahead log into the file and cuts it. A reader may be in the way; then the
    /// next one does it.
    fn checkpoint(&self) {
        let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
        if let Err(error) = self.committer.conn().query_row(sql, [], |_| Ok(())) {
            tracing::debug!(%error, "the write-ahead log stays");
        }
    }

    fn end(mut self) {
        let outcome = self.flush();
        self.checkpoint();
        let outcome = outcome.and_then(|()| self.lock.check());
        let Self { committer, lock, closing, .. } = self;
        drop(committer);
        drop(lock);
        if let Some(reply) = closing {
            drop(reply.send(outcome));
        }
    }
}

fn settle(tx: &Tx<'_>, acked: &[Sequence]) -> rusqlite::Result<()> {
    for sequence in acked {
        run(tx.conn, "DELETE FROM pending WHERE seq = ?1", [to_sql(*sequence)])?;
    }
    Ok(())
}

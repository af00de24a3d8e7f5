//! Working memory. Leases are in memory, turn texts and samples are written behind, the rest is
//! written before it is answered but never waits for the disk.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use ports::BusError;
use ports::reads::{Joined, KeptRead, ReadKey};
use ports::working_memory::{Claim, Sample, Snapshot, TurnText, WorkingMemory};
use proto::ids::{InstanceId, ThreadRef, ToolCallId, ToolName};
use proto::time::Timestamp;
use tokio::time::Instant;

use crate::appends::DEDUP_WINDOW;
use crate::behind::{Then, newer, written_text};
use crate::commit::Tx;
use crate::journal::check_size;
use crate::recent::Mark;
use crate::rows::{all, from_sql, one, run, strange, thread_key, thread_of, to_sql};
use crate::writer::{Message, Promise};
use crate::{ARTIFACT_LIMIT, SqliteBus};

#[async_trait]
impl WorkingMemory for SqliteBus {
    async fn claim(
        &self,
        thread: &ThreadRef,
        call: &ToolCallId,
        holder: &InstanceId,
        lease: Duration,
    ) -> Result<Claim, BusError> {
        let call = (thread.clone(), call.clone());
        Ok(self.inner.leases.claim(call, holder, lease, Instant::now()))
    }

    async fn release(
        &self,
        thread: &ThreadRef,
        call: &ToolCallId,
        holder: &InstanceId,
    ) -> Result<(), BusError> {
        self.inner.leases.release(&(thread.clone(), call.clone()), holder);
        Ok(())
    }

    async fn keep_done(
        &self,
        thread: &ThreadRef,
        call: &ToolCallId,
        observation: Bytes,
        keep: Duration,
    ) -> Result<Bytes, BusError> {
        check_size(&observation, ARTIFACT_LIMIT)?;
        self.inner.recent.mark(thread, Mark::Done, call);
        let (key, call) = (thread_key(thread), call.clone());
        let keep = self.inner.writer.run(Promise::Soft, observation.len(), move |tx| {
            keep_first(tx, &key, &call, &observation, keep)
        });
        Ok(keep.await?)
    }

    async fn done(&self, thread: &ThreadRef, call: &ToolCallId) -> Result<Option<Bytes>, BusError> {
        if self.inner.recent.is_unmarked(thread, Mark::Done, call) {
            return Ok(None);
        }
        let (key, call, now) = (thread_key(thread), call.clone(), self.inner.clock.now());
        let sql = "SELECT observation FROM done WHERE thread = ?1 AND call = ?2 AND expires > ?3";
        let read = self.inner.readers.run(move |conn| {
            one(conn, sql, (&key, call.as_str(), now.0), |row| row.get::<_, Vec<u8>>(0))
        });
        Ok(read.await?.map(Bytes::from))
    }

    async fn mark_cancelled(
        &self,
        thread: &ThreadRef,
        call: &ToolCallId,
        keep: Duration,
    ) -> Result<(), BusError> {
        self.inner.recent.mark(thread, Mark::Cancelled, call);
        let (key, call) = (thread_key(thread), call.clone());
        let mark = self.inner.writer.run(Promise::Soft, 0, move |tx| {
            let sql = "INSERT OR REPLACE INTO cancelled(thread, call, expires) VALUES (?1, ?2, ?3)";
            run(tx.conn, sql, (&key, call.as_str(), tx.now().after(keep).0)).map(drop)
        });
        Ok(mark.await?)
    }

    async fn is_cancelled(&self, thread: &ThreadRef, call: &ToolCallId) -> Result<bool, BusError> {
        if self.inner.recent.is_unmarked(thread, Mark::Cancelled, call) {
            return Ok(false);
        }
        let (key, call, now) = (thread_key(thread), call.clone(), self.inner.clock.now());
        let sql = "SELECT 1 FROM cancelled WHERE thread = ?1 AND call = ?2 AND expires > ?3";
        let read = self
            .inner
            .readers
            .run(move |conn| one(conn, sql, (&key, call.as_str(), now.0), |_| Ok(())));
        Ok(read.await?.is_some())
    }

    async fn keep_snapshot(&self, thread: &ThreadRef, snapshot: Snapshot) -> Result<(), BusError> {
        check_size(&snapshot.payload, ARTIFACT_LIMIT)?;
        let key = thread_key(thread);
        let keep = self.inner.writer.run(Promise::Soft, snapshot.payload.len(), move |tx| {
            let sql = "INSERT INTO snapshots(thread, seq, payload) VALUES (?1, ?2, ?3)
                       ON CONFLICT(thread) DO UPDATE SET seq = excluded.seq,
                         payload = excluded.payload WHERE excluded.seq >= snapshots.seq";
            let payload = snapshot.payload.as_ref();
            run(tx.conn, sql, (&key, to_sql(snapshot.sequence), payload)).map(drop)
        });
        Ok(keep.await?)
    }

    async fn snapshot(&self, thread: &ThreadRef) -> Result<Option<Snapshot>, BusError> {
        let key = thread_key(thread);
        let read = self.inner.readers.run(move |conn| {
            one(conn, "SELECT seq, payload FROM snapshots WHERE thread = ?1", [&key], |row| {
                let payload = Bytes::from(row.get::<_, Vec<u8>>(1)?);
                Ok(Snapshot { sequence: from_sql(row.get(0)?), payload })
            })
        });
        read.await
    }

    async fn keep_turn_text(&self, thread: &ThreadRef, text: TurnText) -> Result<(), BusError> {
        match self.inner.behind.keep_text(thread, text) {
            Then::Nothing => Ok(()),
            Then::Tell => self.inner.writer.send(Message::Behind),
            Then::Wait => self.write_behind().await,
        }
    }

    async fn turn_text(&self, thread: &ThreadRef) -> Result<Option<TurnText>, BusError> {
        // First what waits: once it is written it no longer waits, and the read finds it.
        let waits = self.inner.behind.text(thread);
        let key = thread_key(thread);
        let written = self.inner.readers.run(move |conn| written_text(conn, &key)).await?;
        Ok(newer(waits, written))
    }

    async fn add_samples(
        &self,
        tool: &ToolName,
        samples: &[Sample],
        window: Duration,
    ) -> Result<(), BusError> {
        match self.inner.behind.add_samples(tool, samples, window) {
            Then::Nothing => Ok(()),
            Then::Tell | Then::Wait => self.inner.writer.send(Message::Behind),
        }
    }

    async fn samples(&self, tool: &ToolName) -> Result<Vec<Sample>, BusError> {
        Ok(self.inner.behind.samples(tool))
    }

    async fn take_probe(
        &self,
        tool: &ToolName,
        holder: &InstanceId,
        lease: Duration,
    ) -> Result<bool, BusError> {
        Ok(self.inner.leases.probe(tool, holder, lease, Instant::now()))
    }

    async fn join_read(
        &self,
        key: &ReadKey,
        by: &str,
        lease: Duration,
        not_before: Timestamp,
    ) -> Result<Joined, BusError> {
        Ok(self.inner.leases.reads(|reads| reads.join(key, by, lease, not_before, self.now())))
    }

    async fn keep_read(
        &self,
        key: &ReadKey,
        by: &str,
        read: KeptRead,
        keep: Duration,
    ) -> Result<(), BusError> {
        check_size(&read.value, ARTIFACT_LIMIT)?;
        self.inner.leases.reads(|reads| reads.keep(key, by, read, keep, self.now()));
        Ok(())
    }

    async fn kept_read(&self, key: &ReadKey) -> Result<Option<KeptRead>, BusError> {
        Ok(self.inner.leases.reads(|reads| reads.kept(key, self.now())))
    }

    async fn leave_read(&self, key: &ReadKey, by: &str) -> Result<(), BusError> {
        self.inner.leases.reads(|reads| reads.leave(key, by));
        Ok(())
    }

    async fn take_place(
        &self,
        tool: &ToolName,
        who: &str,
        most: u32,
        lease: Duration,
    ) -> Result<Option<Duration>, BusError> {
        Ok(self.inner.leases.reads(|reads| reads.take_place(tool, who, most, lease, self.now())))
    }

    async fn leave_place(&self, tool: &ToolName, who: &str) -> Result<(), BusError> {
        self.inner.leases.reads(|reads| reads.leave_place(tool, who));
        Ok(())
    }

    async fn set_active(
        &self,
        thread: &ThreadRef,
        deadline: Option<Timestamp>,
    ) -> Result<(), BusError> {
        let key = thread_key(thread);
        let set = self.inner.writer.run(Promise::Soft, 0, move |tx| {
            let sql = "INSERT OR REPLACE INTO active(thread, deadline) VALUES (?1, ?2)";
            match deadline {
                Some(at) => run(tx.conn, sql, (&key, at.0)).map(drop),
                None => run(tx.conn, "DELETE FROM active WHERE thread = ?1", [&key]).map(drop),
            }
        });
        Ok(set.await?)
    }

    async fn active(&self, until: Timestamp, limit: usize) -> Result<Vec<ThreadRef>, BusError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let sql = "SELECT thread FROM active WHERE deadline <= ?1 ORDER BY deadline LIMIT ?2";
        let read = self.inner.readers.run(move |conn| {
            all(conn, sql, (until.0, limit), |row| {
                thread_of(row.get_ref(0)?.as_str()?).ok_or_else(|| strange(0, &"not a thread"))
            })
        });
        read.await
    }
}

impl SqliteBus {
    fn now(&self) -> Timestamp {
        self.inner.clock.now()
    }

    /// Waits until what is kept in memory at this moment is written.
    async fn write_behind(&self) -> Result<(), BusError> {
        let dirty = Arc::new(self.inner.behind.dirty());
        let writing = Arc::clone(&dirty);
        let write = move |tx: &mut Tx<'_>| writing.write(tx.conn);
        self.inner.writer.run(Promise::Soft, 0, write).await?;
        self.inner.behind.written(&dirty);
        Ok(())
    }
}

/// Keeps an observation unless one is kept; answers with the one that is.
fn keep_first(
    tx: &Tx<'_>,
    key: &str,
    call: &ToolCallId,
    observation: &Bytes,
    keep: Duration,
) -> rusqlite::Result<Bytes> {
    let now = tx.now();
    let sql = "INSERT INTO done(thread, call, observation, expires) VALUES (?1, ?2, ?3, ?4)
               ON CONFLICT(thread, call) DO UPDATE SET observation = excluded.observation,
                 expires = excluded.expires WHERE done.expires <= ?5";
    let params = (key, call.as_str(), observation.as_ref(), now.after(keep).0, now.0);
    if run(tx.conn, sql, params)? > 0 {
        return Ok(observation.clone());
    }
    let sql = "SELECT observation FROM done WHERE thread = ?1 AND call = ?2";
    let kept = one(tx.conn, sql, (key, call.as_str()), |row| row.get::<_, Vec<u8>>(0))?;
    Ok(kept.map_or_else(|| observation.clone(), Bytes::from))
}

/// Removes rows whose time is over.
pub(crate) fn sweep(tx: &mut Tx<'_>) -> rusqlite::Result<()> {
    let now = tx.now();
    run(tx.conn, "DELETE FROM done WHERE expires <= ?1", [now.0])?;
    run(tx.conn, "DELETE FROM cancelled WHERE expires <= ?1", [now.0])?;
    run(tx.conn, "DELETE FROM dedup WHERE at <= ?1", [now.before(DEDUP_WINDOW).0])?;
    Ok(())
}

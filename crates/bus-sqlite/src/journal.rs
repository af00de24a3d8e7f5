//! The journal port.

use async_trait::async_trait;
use bytes::Bytes;
use ports::BusError;
use ports::feed::{Feed, MOST_RECORDS};
use ports::journal::{Append, AppendError, Appended, Fence, Journal, Stored};
use proto::ids::{Partition, Sequence, TenantId, ThreadRef};
use proto::subject::{Leaf, Subject};
use proto::time::Timestamp;
use rusqlite::Connection;

use crate::appends::{self, Verdict};
use crate::rows::{STORED, all, chain_of, leaf_text, one, stored, strange, thread_at, to_sql};
use crate::writer::Promise;
use crate::{RECORD_LIMIT, SqliteBus, purge, schedules};

#[async_trait]
impl Journal for SqliteBus {
    async fn append(&self, append: Append) -> Result<Appended, AppendError> {
        check_append(&append)?;
        let bytes = append.payload.len();
        let work = move |tx: &mut crate::commit::Tx<'_>| appends::append(tx, &append);
        match self.inner.writer.run(Promise::Durable, bytes, work).await? {
            Verdict::Done(appended) => Ok(appended),
            Verdict::Fenced(last) => Err(AppendError::Fenced { last: Some(last) }),
        }
    }

    async fn read(
        &self,
        thread: &ThreadRef,
        from: Sequence,
        _floor: Sequence,
    ) -> Result<Vec<Stored>, BusError> {
        // Reads see every answered append, so any floor holds.
        if let Some(records) = self.inner.recent.read(thread, from) {
            return Ok(records);
        }
        let thread = thread.clone();
        self.inner.readers.run(move |conn| read_thread(conn, &thread, from)).await
    }

    async fn last(&self, subject: &Subject) -> Result<Option<Stored>, BusError> {
        let subject = subject.clone();
        self.inner.readers.run(move |conn| last_record(conn, &subject)).await
    }

    async fn schedule(
        &self,
        thread: &ThreadRef,
        at: Timestamp,
        fence: Fence,
    ) -> Result<(), AppendError> {
        let thread = thread.clone();
        let work = move |tx: &mut crate::commit::Tx<'_>| schedules::set(tx, &thread, at, fence);
        match self.inner.writer.run(Promise::Durable, 0, work).await? {
            Verdict::Done(()) => Ok(()),
            Verdict::Fenced(last) => Err(AppendError::Fenced { last: Some(last) }),
        }
    }

    async fn scheduled(&self, thread: &ThreadRef) -> Result<Option<Timestamp>, BusError> {
        let thread = thread.clone();
        self.inner.readers.run(move |conn| schedules::get(conn, &thread)).await
    }

    async fn purge(&self, thread: &ThreadRef, up_to: Sequence) -> Result<(), BusError> {
        let thread = thread.clone();
        let work = move |tx: &mut crate::commit::Tx<'_>| purge::purge(tx, &thread, up_to);
        Ok(self.inner.writer.run(Promise::Durable, 0, work).await?)
    }

    async fn threads(&self, tenant: &TenantId, limit: usize) -> Result<Vec<ThreadRef>, BusError> {
        let tenant = tenant.clone();
        self.inner.readers.run(move |conn| list_threads(conn, &tenant, limit)).await
    }

    async fn server_time(&self) -> Result<Timestamp, BusError> {
        Ok(self.inner.clock.now())
    }
}

#[async_trait]
impl Feed for SqliteBus {
    async fn facts(
        &self,
        partition: Partition,
        from: Sequence,
        limit: usize,
    ) -> Result<Vec<Stored>, BusError> {
        let limit = i64::try_from(limit.min(MOST_RECORDS)).unwrap_or(0);
        self.inner.readers.run(move |conn| read_facts(conn, partition, from, limit)).await
    }
}

/// Facts of all threads of a partition, in order.
pub(crate) fn read_facts(
    conn: &Connection,
    partition: Partition,
    from: Sequence,
    limit: i64,
) -> rusqlite::Result<Vec<Stored>> {
    let sql = format!(
        "SELECT {STORED}, t.part, t.tenant, t.thread FROM records r JOIN threads t ON t.id = r.thread_id
         WHERE r.seq >= ?1 AND r.leaf = ?2 AND t.part = ?3 ORDER BY r.seq LIMIT ?4"
    );
    let leaf = leaf_text(&Leaf::Fact);
    all(conn, &sql, (to_sql(from), leaf, partition.0, limit), |row| {
        let thread = thread_at(row, 4)?;
        stored(row, &thread)
    })
}

fn check_append(append: &Append) -> Result<(), BusError> {
    check_size(&append.payload, RECORD_LIMIT)?;
    if append.subject.leaf == Leaf::Schedule {
        let why = "a schedule is set with `schedule`, not appended".to_owned();
        return Err(BusError::Refused(why));
    }
    Ok(())
}

/// Refuses what is larger than `limit`.
pub(crate) fn check_size(payload: &Bytes, limit: usize) -> Result<(), BusError> {
    let bytes = payload.len();
    if bytes > limit { Err(BusError::TooLarge { bytes, limit }) } else { Ok(()) }
}

/// The records of a thread from `from` on, in order.
pub(crate) fn read_thread(
    conn: &Connection,
    thread: &ThreadRef,
    from: Sequence,
) -> rusqlite::Result<Vec<Stored>> {
    let sql = format!(
        "SELECT {STORED} FROM records r WHERE r.seq >= ?4 AND r.thread_id =
           (SELECT id FROM threads WHERE tenant = ?1 AND thread = ?2 AND part = ?3)
         ORDER BY r.seq"
    );
    let name = thread.thread.to_string();
    let params = (thread.tenant.as_str(), name, thread.partition.0, to_sql(from));
    all(conn, &sql, params, |row| stored(row, thread))
}

/// The newest record of a subject.
pub(crate) fn last_record(
    conn: &Connection,
    subject: &Subject,
) -> rusqlite::Result<Option<Stored>> {
    let sql = format!(
        "SELECT {STORED} FROM records r WHERE r.chain = ?4 AND r.leaf = ?5 AND r.thread_id =
           (SELECT id FROM threads WHERE tenant = ?1 AND thread = ?2 AND part = ?3)
         ORDER BY r.seq DESC LIMIT 1"
    );
    let thread = &subject.thread;
    let leaf = leaf_text(&subject.leaf);
    let chain = chain_of(&subject.leaf, &leaf);
    let name = thread.thread.to_string();
    let params = (thread.tenant.as_str(), name, thread.partition.0, chain, &leaf);
    one(conn, &sql, params, |row| stored(row, thread))
}

/// Threads of a tenant that have records, the youngest first.
pub(crate) fn list_threads(
    conn: &Connection,
    tenant: &TenantId,
    limit: usize,
) -> rusqlite::Result<Vec<ThreadRef>> {
    let sql = "SELECT part, thread FROM threads t WHERE tenant = ?1
                 AND EXISTS (SELECT 1 FROM records r WHERE r.thread_id = t.id)
               ORDER BY thread DESC, part LIMIT ?2";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    all(conn, sql, (tenant.as_str(), limit), |row| {
        let thread = row.get_ref(1)?.as_str()?.parse().map_err(|error| strange(1, &error))?;
        Ok(ThreadRef { partition: Partition(row.get(0)?), tenant: tenant.clone(), thread })
    })
}

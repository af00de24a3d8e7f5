//! Removing all that is kept of a thread, for good.

use ports::BusError;
use proto::ids::{Sequence, ThreadRef};

use crate::SqliteBus;
use crate::commit::Tx;
use crate::purge::purge;
use crate::rows::{one, run, thread_id, thread_key};
use crate::writer::Promise;

/// What is kept by a thread's key.
const TABLES: [(&str, &str); 6] = [
    ("artifacts", "DELETE FROM artifacts WHERE thread = ?1"),
    ("results", "DELETE FROM done WHERE thread = ?1"),
    ("cancel marks", "DELETE FROM cancelled WHERE thread = ?1"),
    ("snapshots", "DELETE FROM snapshots WHERE thread = ?1"),
    ("texts of turns", "DELETE FROM turn_texts WHERE thread = ?1"),
    ("wake-ups", "DELETE FROM active WHERE thread = ?1"),
];

impl SqliteBus {
    /// Removes a thread's records, artifacts and working memory in one commit, and overwrites what
    /// they lay in; answers how many of each went. Nobody may work on the thread meanwhile: what a
    /// planner has in memory would be written again.
    pub async fn forget_thread(
        &self,
        thread: &ThreadRef,
    ) -> Result<Vec<(&'static str, u64)>, BusError> {
        let thread = thread.clone();
        let forget = move |tx: &mut Tx<'_>| forget(tx, &thread);
        Ok(self.inner.writer.run(Promise::Durable, 0, forget).await?)
    }
}

fn forget(tx: &mut Tx<'_>, thread: &ThreadRef) -> rusqlite::Result<Vec<(&'static str, u64)>> {
    let key = thread_key(thread);
    let count = |rows: usize| u64::try_from(rows).unwrap_or(u64::MAX);
    let mut gone = vec![("records", records(tx, thread)?)];
    purge(tx, thread, Sequence(u64::MAX))?;
    for (what, sql) in TABLES {
        gone.push((what, count(run(tx.conn, sql, [&key])?)));
    }
    // A client's own key for an input may say anything.
    let prefix = format!("{}/{}/", thread.tenant, thread.thread);
    let sql = "DELETE FROM dedup WHERE substr(id, 1, length(?1)) = ?1";
    gone.push(("keys of inputs", count(run(tx.conn, sql, [&prefix])?)));
    tx.effects.scrub = true;
    Ok(gone)
}

fn records(tx: &Tx<'_>, thread: &ThreadRef) -> rusqlite::Result<u64> {
    let Some(id) = thread_id(tx.conn, thread)? else { return Ok(0) };
    let sql = "SELECT count(*) FROM records WHERE thread_id = ?1";
    let count = one(tx.conn, sql, [id], |row| row.get::<_, i64>(0))?;
    Ok(u64::try_from(count.unwrap_or(0)).unwrap_or(0))
}

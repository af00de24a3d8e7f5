//! One schedule per thread, and the ticks they turn into.

use ports::journal::Fence;
use proto::envelope::Envelope;
use proto::ids::ThreadRef;
use proto::record::Record;
use proto::subject::{Leaf, Subject};
use proto::time::Timestamp;
use rusqlite::Connection;

use crate::appends::{Verdict, check, write};
use crate::commit::Tx;
use crate::rows::{all, ensure_thread, one, run, thread_at, thread_id};

/// Most ticks of one transaction; the rest follow at once.
const TICKS: i64 = 256;

/// Sets or replaces a thread's schedule.
pub(crate) fn set(
    tx: &mut Tx<'_>,
    thread: &ThreadRef,
    at: Timestamp,
    fence: Fence,
) -> rusqlite::Result<Verdict<()>> {
    let known = match check(tx.conn, thread, &Leaf::Schedule, fence)? {
        Verdict::Done(known) => known,
        Verdict::Fenced(last) => return Ok(Verdict::Fenced(last)),
    };
    let id = match known {
        Some(id) => id,
        None => ensure_thread(tx.conn, thread)?,
    };
    let sql = "INSERT OR REPLACE INTO schedules(thread_id, at) VALUES (?1, ?2)";
    run(tx.conn, sql, (id, at.0))?;
    tx.effects.schedules_changed = true;
    Ok(Verdict::Done(()))
}

/// When a thread's schedule will fire.
pub(crate) fn get(conn: &Connection, thread: &ThreadRef) -> rusqlite::Result<Option<Timestamp>> {
    let Some(id) = thread_id(conn, thread)? else { return Ok(None) };
    let sql = "SELECT at FROM schedules WHERE thread_id = ?1";
    one(conn, sql, [id], |row| Ok(Timestamp(row.get(0)?)))
}

/// When the next schedule will fire.
pub(crate) fn earliest(conn: &Connection) -> rusqlite::Result<Option<Timestamp>> {
    let sql = "SELECT min(at) FROM schedules";
    let at = one(conn, sql, [], |row| row.get::<_, Option<i64>>(0))?;
    Ok(at.flatten().map(Timestamp))
}

/// Turns schedules that are due into ticks.
pub(crate) fn fire(tx: &mut Tx<'_>) -> rusqlite::Result<()> {
    let now = tx.now();
    let sql = "SELECT s.thread_id, t.part, t.tenant, t.thread FROM schedules s
               JOIN threads t ON t.id = s.thread_id WHERE s.at <= ?1 ORDER BY s.at LIMIT ?2";
    let due: Vec<(i64, ThreadRef)> =
        all(tx.conn, sql, (now.0, TICKS), |row| Ok((row.get(0)?, thread_at(row, 1)?)))?;
    for (id, thread) in due {
        run(tx.conn, "DELETE FROM schedules WHERE thread_id = ?1", [id])?;
        let tick = Envelope::new(tx.ids.nonce(), None, Record::Tick).encode();
        write(tx, Some(id), &Subject::new(thread, Leaf::Tick), &tick.into(), now)?;
    }
    Ok(())
}

//! Removing a thread's records for good.

use proto::ids::{Sequence, ThreadRef};

use crate::awaited;
use crate::commit::Tx;
use crate::rows::{all, from_sql, one, run, thread_id, to_sql};

/// Removes records up to `up_to` and whatever waits for them. Nothing is left of a thread without
/// records, its schedule neither.
pub(crate) fn purge(tx: &mut Tx<'_>, thread: &ThreadRef, up_to: Sequence) -> rusqlite::Result<()> {
    let Some(id) = thread_id(tx.conn, thread)? else { return Ok(()) };
    tx.effects.purged.push(thread.clone());
    let range = (id, to_sql(up_to));
    let sql = "DELETE FROM pending WHERE seq IN
                 (SELECT seq FROM records WHERE thread_id = ?1 AND seq <= ?2) RETURNING seq";
    let removed = all(tx.conn, sql, range, |row| Ok(from_sql(row.get(0)?)))?;
    tx.effects.removed.extend(removed);
    run(tx.conn, "DELETE FROM open_starts WHERE thread_id = ?1 AND seq <= ?2", range)?;
    run(tx.conn, "DELETE FROM records WHERE thread_id = ?1 AND seq <= ?2", range)?;
    let sql = "SELECT 1 FROM records WHERE thread_id = ?1 LIMIT 1";
    if one(tx.conn, sql, [id], |_| Ok(()))?.is_none() {
        run(tx.conn, "DELETE FROM schedules WHERE thread_id = ?1", [id])?;
        run(tx.conn, "DELETE FROM threads WHERE id = ?1", [id])?;
        awaited::forget(tx.conn, thread)?;
        tx.effects.schedules_changed = true;
        tx.effects.scrub = true;
    }
    Ok(())
}

//! How fragments leave the file for good.

use std::time::Duration;

use ports::recall::Scope;
use proto::time::Timestamp;
use rusqlite::Connection;

use crate::rows::{edition_text, one, place, run, strange};

/// Tries to empty the log while somebody reads from it.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(20);

/// Writes the tombstone; a later one of the same scope takes its place.
pub(crate) fn bury(
    conn: &Connection,
    tenant: i64,
    scope: &Scope,
    at: Timestamp,
) -> rusqlite::Result<()> {
    let sql = "INSERT INTO tombstones(tenant, scope, at) VALUES (?1, ?2, ?3)
               ON CONFLICT(tenant, scope) DO UPDATE SET at = max(at, excluded.at)";
    let scope = serde_json::to_string(scope).map_err(|why| strange(1, &why))?;
    run(conn, sql, (tenant, scope, at.0)).map(drop)
}

/// Removes what a scope covers.
pub(crate) fn remove(conn: &Connection, tenant: i64, scope: &Scope) -> rusqlite::Result<usize> {
    let gone = match scope {
        Scope::Tenant => run(conn, "DELETE FROM fragments WHERE tenant = ?1", [tenant]),
        Scope::Thread { thread } => {
            let sql = "DELETE FROM fragments WHERE tenant = ?1 AND thread = ?2";
            run(conn, sql, (tenant, thread.to_string()))
        }
        Scope::Subject { hash } => {
            let sql = "DELETE FROM fragments WHERE tenant = ?1 AND id IN
                         (SELECT fragment FROM subjects WHERE tenant = ?1 AND hash = ?2)";
            run(conn, sql, (tenant, hash))
        }
        Scope::Fragment { id } => {
            let sql = "DELETE FROM fragments
                       WHERE tenant = ?1 AND thread = ?2 AND turn = ?3 AND part = ?4";
            let (thread, turn, part) = place(id);
            run(conn, sql, (tenant, thread, turn, part))
        }
        Scope::Edition { edition } => {
            let sql = "DELETE FROM fragments WHERE tenant = ?1 AND edition = ?2";
            run(conn, sql, (tenant, edition_text(edition)))
        }
    }?;
    if gone > 0 {
        let orphans = "DELETE FROM subjects WHERE tenant = ?1
                       AND fragment NOT IN (SELECT id FROM fragments WHERE tenant = ?1)";
        run(conn, orphans, [tenant])?;
    }
    Ok(gone)
}

/// Moves the log into the file and cuts it to nothing, so that no earlier page is left in it. The file
/// itself is overwritten where something was deleted. Answers whether it was possible.
pub(crate) fn empty_log(conn: &Connection) -> rusqlite::Result<bool> {
    for _ in 0..TRIES {
        let busy: Option<i64> = one(conn, "PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        if busy == Some(0) {
            return Ok(true);
        }
        std::thread::sleep(PAUSE);
    }
    Ok(false)
}

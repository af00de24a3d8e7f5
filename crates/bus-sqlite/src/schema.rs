//! The tables, and what a file has to say about itself before it is used.

use ports::BusError;
use rusqlite::Connection;

/// The version of the tables below; a file with a higher one was written by a newer build.
pub(crate) const VERSION: i64 = 1;
/// Marks the file as ours (`SyBs`).
pub(crate) const APPLICATION: i64 = 0x5379_4273;

/// `chain` is `plan` for the fenced chain of a thread and the leaf otherwise, so that one index
/// answers both kinds of fence. Sequences are never used again, not even after a purge.
const TABLES: &str = "
CREATE TABLE threads(
  id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, thread TEXT NOT NULL, part INTEGER NOT NULL,
  UNIQUE(tenant, thread, part)) STRICT;
CREATE TABLE records(
  seq INTEGER PRIMARY KEY AUTOINCREMENT, thread_id INTEGER NOT NULL, chain TEXT NOT NULL,
  leaf TEXT NOT NULL, at INTEGER NOT NULL, payload BLOB NOT NULL) STRICT;
CREATE INDEX records_by_thread ON records(thread_id);
CREATE INDEX records_by_chain ON records(thread_id, chain);
CREATE TABLE pending(seq INTEGER PRIMARY KEY) STRICT;
CREATE TABLE dedup(id TEXT PRIMARY KEY, seq INTEGER NOT NULL, at INTEGER NOT NULL)
  STRICT, WITHOUT ROWID;
CREATE INDEX dedup_by_age ON dedup(at);
CREATE TABLE schedules(thread_id INTEGER PRIMARY KEY, at INTEGER NOT NULL) STRICT;
CREATE INDEX schedules_by_time ON schedules(at);
CREATE TABLE open_starts(
  seq INTEGER PRIMARY KEY, thread_id INTEGER NOT NULL, call TEXT NOT NULL) STRICT;
CREATE INDEX open_starts_by_thread ON open_starts(thread_id, call);
CREATE TABLE artifacts(
  thread TEXT NOT NULL, id TEXT NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY(thread, id)) STRICT;
CREATE TABLE done(
  thread TEXT NOT NULL, call TEXT NOT NULL, observation BLOB NOT NULL, expires INTEGER NOT NULL,
  PRIMARY KEY(thread, call)) STRICT;
CREATE INDEX done_by_expiry ON done(expires);
CREATE TABLE cancelled(
  thread TEXT NOT NULL, call TEXT NOT NULL, expires INTEGER NOT NULL,
  PRIMARY KEY(thread, call)) STRICT, WITHOUT ROWID;
CREATE INDEX cancelled_by_expiry ON cancelled(expires);
CREATE TABLE snapshots(thread TEXT PRIMARY KEY, seq INTEGER NOT NULL, payload BLOB NOT NULL) STRICT;
CREATE TABLE turn_texts(
  thread TEXT PRIMARY KEY, started INTEGER NOT NULL, text TEXT NOT NULL, reasoning TEXT NOT NULL)
  STRICT;
CREATE TABLE samples(tool TEXT PRIMARY KEY, packed BLOB NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE active(thread TEXT PRIMARY KEY, deadline INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE INDEX active_by_deadline ON active(deadline);
";

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing yet.
    Empty,
    /// A store of this version.
    Ours,
}

/// Looks at the file without changing it.
pub(crate) fn look(conn: &Connection) -> rusqlite::Result<Result<Found, BusError>> {
    let tables: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let application = pragma(conn, "application_id")?;
    let version = pragma(conn, "user_version")?;
    if tables == 0 && application == 0 && version == 0 {
        return Ok(Ok(Found::Empty));
    }
    if application != APPLICATION {
        let text = "it is a SQLite file of another program".to_owned();
        return Ok(Err(BusError::Refused(text)));
    }
    if version != VERSION {
        return Ok(Err(BusError::Refused(format!(
            "it has schema version {version} and this build knows version {VERSION}: use the build that wrote it, or a newer one"
        ))));
    }
    Ok(Ok(Found::Ours))
}

/// Makes the tables, all or none.
pub(crate) fn create(conn: &Connection) -> rusqlite::Result<()> {
    conn.execute_batch(&format!(
        "BEGIN IMMEDIATE; {TABLES}
         PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION}; COMMIT;"
    ))
}

/// The value of a numeric pragma.
pub(crate) fn pragma(conn: &Connection, name: &str) -> rusqlite::Result<i64> {
    conn.pragma_query_value(None, name, |row| row.get(0))
}

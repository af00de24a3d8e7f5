//! The tables, and what a file has to say about itself before it is used.

use ports::BusError;
use rusqlite::{Connection, OptionalExtension};

/// The version of the tables below.
const VERSION: i64 = 1;
/// Marks the file as ours (`SyRe`).
const APPLICATION: i64 = 0x5379_5265;

/// Erased content is overwritten, and so is the log once it was moved into the file. `FULL` is not
/// needed: what a power cut takes is indexed again, because the cursor goes with it.
const SETTINGS: &str = "
PRAGMA secure_delete = ON; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -16000;
PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA journal_size_limit = 16777216;";

/// `rest` is the fragment as JSON; the columns beside it are what is asked for.
const TABLES: &str = "
CREATE TABLE tenants(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE fragments(
  id INTEGER PRIMARY KEY AUTOINCREMENT, tenant INTEGER NOT NULL, thread TEXT NOT NULL,
  turn INTEGER NOT NULL, part INTEGER NOT NULL, at INTEGER NOT NULL, edition TEXT, rest TEXT NOT NULL,
  vector BLOB) STRICT;
CREATE UNIQUE INDEX fragments_by_place ON fragments(tenant, thread, turn, part);
CREATE INDEX fragments_by_edition ON fragments(tenant, edition) WHERE edition IS NOT NULL;
CREATE TABLE subjects(
  tenant INTEGER NOT NULL, hash TEXT NOT NULL, fragment INTEGER NOT NULL,
  PRIMARY KEY(tenant, hash, fragment)) STRICT, WITHOUT ROWID;
CREATE INDEX subjects_by_fragment ON subjects(fragment);
CREATE TABLE tombstones(
  tenant INTEGER NOT NULL, scope TEXT NOT NULL, at INTEGER NOT NULL,
  PRIMARY KEY(tenant, scope)) STRICT, WITHOUT ROWID;
CREATE TABLE cursors(reader TEXT PRIMARY KEY, place TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE space(
  one INTEGER PRIMARY KEY CHECK(one = 1), model TEXT NOT NULL, dimension INTEGER NOT NULL) STRICT;
";

/// Readies a connection; makes the tables in an empty file.
pub(crate) fn prepare(conn: &mut Connection) -> rusqlite::Result<Result<(), BusError>> {
    let version: i64 = pragma(conn, "user_version")?;
    let application: i64 = pragma(conn, "application_id")?;
    let tables: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if tables > 0 && (application != APPLICATION || version != VERSION) {
        let why = format!(
            "the file of long-term memory is of another program or version ({application:x}, {version}): \
             remove it, it is filled again from the journal"
        );
        return Ok(Err(BusError::Refused(why)));
    }
    conn.execute_batch(SETTINGS)?;
    if tables == 0 {
        let tx = conn.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let there = "SELECT 1 FROM sqlite_schema WHERE name = 'tenants'";
        if tx.query_row(there, [], |_| Ok(())).optional()?.is_none() {
            tx.execute_batch(TABLES)?;
            tx.pragma_update(None, "application_id", APPLICATION)?;
            tx.pragma_update(None, "user_version", VERSION)?;
        }
        tx.commit()?;
    }
    Ok(Ok(()))
}

/// The value of a numeric pragma.
pub(crate) fn pragma(conn: &Connection, name: &str) -> rusqlite::Result<i64> {
    conn.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0))
}

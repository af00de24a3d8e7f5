//! Notes on threads whose ending somebody still has to be shown, for the program that owns the
//! file. They are no part of any port: only one file, owned by one process, needs them.

use ports::BusError;
use proto::ids::ThreadRef;
use rusqlite::Connection;

use crate::rows::{all, one, run, thread_key, thread_of};
use crate::writer::Promise;
use crate::{SqliteBus, SqliteReader};

/// Files of earlier builds lack the table; earlier builds do not mind it.
const TABLE: &str = "
CREATE TABLE IF NOT EXISTS awaited(thread TEXT PRIMARY KEY, note BLOB NOT NULL)
  STRICT, WITHOUT ROWID";

/// Makes the table.
pub(crate) fn ensure(conn: &Connection) -> rusqlite::Result<()> {
    conn.execute_batch(TABLE)
}

/// A thread that is gone has no ending.
pub(crate) fn forget(conn: &Connection, thread: &ThreadRef) -> rusqlite::Result<()> {
    run(conn, "DELETE FROM awaited WHERE thread = ?1", [thread_key(thread)]).map(drop)
}

impl SqliteBus {
    /// Keeps `note` for a thread whose ending is to be shown, in place of an earlier one. Durable
    /// when answered, before or without any record of the thread.
    pub async fn await_ending(&self, thread: &ThreadRef, note: Vec<u8>) -> Result<(), BusError> {
        let (key, bytes) = (thread_key(thread), note.len());
        let keep = self.inner.writer.run(Promise::Durable, bytes, move |tx| {
            let sql = "INSERT INTO awaited(thread, note) VALUES (?1, ?2)
                       ON CONFLICT(thread) DO UPDATE SET note = excluded.note";
            run(tx.conn, sql, (&key, &note)).map(drop)
        });
        Ok(keep.await?)
    }

    /// The ending was shown. A power cut may undo this; then it is shown once more.
    pub async fn ending_shown(&self, thread: &ThreadRef) -> Result<(), BusError> {
        let thread = thread.clone();
        let forgotten = self.inner.writer.run(Promise::Soft, 0, move |tx| forget(tx.conn, &thread));
        Ok(forgotten.await?)
    }

    /// Every note that is kept, with its thread.
    pub async fn awaited_endings(&self) -> Result<Vec<(ThreadRef, Vec<u8>)>, BusError> {
        self.inner.readers.run(read).await
    }
}

impl SqliteReader {
    /// Every note that is kept, with its thread.
    pub async fn awaited_endings(&self) -> Result<Vec<(ThreadRef, Vec<u8>)>, BusError> {
        self.readers.run(read).await
    }
}

fn read(conn: &Connection) -> rusqlite::Result<Vec<(ThreadRef, Vec<u8>)>> {
    let sql = "SELECT 1 FROM sqlite_schema WHERE name = 'awaited'";
    if one(conn, sql, [], |_| Ok(()))?.is_none() {
        return Ok(Vec::new());
    }
    let rows = all(conn, "SELECT thread, note FROM awaited", [], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, Vec<u8>>(1)?))
    })?;
    let known = |(key, note): (String, Vec<u8>)| Some((thread_of(&key)?, note));
    Ok(rows.into_iter().filter_map(known).collect())
}

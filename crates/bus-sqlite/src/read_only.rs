//! Looking at a store that another process may own.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use ports::BusError;
use ports::artifacts::Artifacts;
use ports::clock::Clock;
use ports::deployment::StoreFacts;
use ports::journal::{Append, AppendError, Appended, Fence, Journal, Stored};
use proto::ids::{ArtifactId, Sequence, TenantId, ThreadRef};
use proto::observation::ArtifactRef;
use proto::subject::Subject;
use proto::time::Timestamp;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::fault::fault_at_open;
use crate::journal::{last_record, list_threads, read_thread};
use crate::open::{identify, open_reader, open_unchanging};
use crate::readers::Readers;
use crate::rows::thread_key;
use crate::schema::Found;
use crate::{Durability, SqliteBus, artifacts, schedules, schema};

const DEADLINE: Duration = Duration::from_secs(30);

/// A journal that can be read and not written, without the lock of its owner.
pub struct SqliteReader {
    pub(crate) readers: Readers,
    clock: Arc<dyn Clock>,
}

impl SqliteBus {
    /// Opens an existing store for reading, whether or not another process runs on it.
    pub fn open_read_only(
        path: impl AsRef<Path>,
        clock: Arc<dyn Clock>,
    ) -> Result<SqliteReader, BusError> {
        let path: PathBuf = path.as_ref().to_owned();
        if !path.exists() {
            return Err(BusError::Refused(format!("{} does not exist", path.display())));
        }
        let mut conn = open_beside_log(&path)?;
        if identify(&conn, &path)? == Found::Empty {
            // Its owner is about to fill it, or was killed before that: it has no thread.
            conn = open_blank().map_err(|error| fault_at_open(&error, &path))?;
        }
        let readers = Readers::start(vec![conn], DEADLINE)
            .map_err(|error| BusError::Unavailable(format!("no thread: {error}")))?;
        Ok(SqliteReader { readers, clock })
    }
}

/// What an existing store says of itself, whether or not another process runs on it. Whether its
/// commits are synced is not in the file: its owner's `durability` says it.
pub fn inspect(path: &Path, durability: Durability) -> Result<StoreFacts, BusError> {
    let conn = open_beside_log(path)?;
    identify(&conn, path)?;
    let wrong = |error: rusqlite::Error| fault_at_open(&error, path);
    let mode = conn.query_row("PRAGMA journal_mode", [], |row| row.get(0)).map_err(wrong)?;
    let refuse = |error: std::io::Error| BusError::Refused(error.to_string());
    let bytes = std::fs::metadata(path).map_err(refuse)?.len();
    let synced = durability == Durability::Full;
    Ok(StoreFacts { synced, journal_mode: mode, bytes })
}

/// A connection that sees the write-ahead log too. Where nothing can be written, not even the log's
/// index, the file alone is read, unless the log holds more than it does.
fn open_beside_log(path: &Path) -> Result<Connection, BusError> {
    if !lacks_log_index(path) {
        return open_reader(path);
    }
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    if std::fs::metadata(&log).is_ok_and(|about| about.len() > 0) {
        return Err(BusError::Refused(format!(
            "{} has a write-ahead log that cannot be read where nothing can be written: copy the file \
             together with {} to a folder that can be written, and name the copy",
            path.display(),
            PathBuf::from(log).display()
        )));
    }
    open_unchanging(path)
}

/// Whether the file can be opened and the index of its log can be neither read nor made.
fn lacks_log_index(path: &Path) -> bool {
    let look =
        |conn: Connection| conn.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()));
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let cannot = |error: rusqlite::Error| error.sqlite_error_code() == Some(ErrorCode::CannotOpen);
    Connection::open_with_flags(path, flags).is_ok_and(|conn| look(conn).is_err_and(cannot))
}

fn open_blank() -> rusqlite::Result<Connection> {
    let conn = Connection::open_in_memory()?;
    schema::create(&conn)?;
    Ok(conn)
}

fn refused() -> BusError {
    BusError::Refused("the store is opened for reading only".to_owned())
}

#[async_trait]
impl Journal for SqliteReader {
    async fn append(&self, _append: Append) -> Result<Appended, AppendError> {
        Err(refused().into())
    }

    async fn read(
        &self,
        thread: &ThreadRef,
        from: Sequence,
        _floor: Sequence,
    ) -> Result<Vec<Stored>, BusError> {
        let thread = thread.clone();
        self.readers.run(move |conn| read_thread(conn, &thread, from)).await
    }

    async fn last(&self, subject: &Subject) -> Result<Option<Stored>, BusError> {
        let subject = subject.clone();
        self.readers.run(move |conn| last_record(conn, &subject)).await
    }

    async fn schedule(
        &self,
        _thread: &ThreadRef,
        _at: Timestamp,
        _fence: Fence,
    ) -> Result<(), AppendError> {
        Err(refused().into())
    }

    async fn scheduled(&self, thread: &ThreadRef) -> Result<Option<Timestamp>, BusError> {
        let thread = thread.clone();
        self.readers.run(move |conn| schedules::get(conn, &thread)).await
    }

    async fn purge(&self, _thread: &ThreadRef, _up_to: Sequence) -> Result<(), BusError> {
        Err(refused())
    }

    async fn threads(&self, tenant: &TenantId, limit: usize) -> Result<Vec<ThreadRef>, BusError> {
        let tenant = tenant.clone();
        self.readers.run(move |conn| list_threads(conn, &tenant, limit)).await
    }

    async fn server_time(&self) -> Result<Timestamp, BusError> {
        Ok(self.clock.now())
    }
}

#[async_trait]
impl Artifacts for SqliteReader {
    async fn put(&self, _thread: &ThreadRef, _bytes: Bytes) -> Result<ArtifactRef, BusError> {
        Err(refused())
    }

    async fn get(&self, thread: &ThreadRef, id: &ArtifactId) -> Result<Option<Bytes>, BusError> {
        let (key, id) = (thread_key(thread), id.clone());
        self.readers.run(move |conn| artifacts::load(conn, &key, &id)).await
    }

    async fn remove(&self, _thread: &ThreadRef, _id: &ArtifactId) -> Result<(), BusError> {
        Err(refused())
    }

    async fn erase(&self, _thread: &ThreadRef) -> Result<(), BusError> {
        Err(refused())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_on_an_unchanging_medium_is_read_whatever_its_name_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a b?c#d%20.db");
        let conn = Connection::open(&path).unwrap();
        schema::create(&conn).unwrap();
        conn.close().unwrap();
        let conn = open_unchanging(&path).unwrap();
        assert_eq!(identify(&conn, &path), Ok(Found::Ours));
        assert!(conn.execute_batch("DELETE FROM threads").is_err());
        assert!(!lacks_log_index(&path));
    }
}

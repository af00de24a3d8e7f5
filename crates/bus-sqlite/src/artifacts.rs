//! Payloads outside messages.

use async_trait::async_trait;
use bytes::Bytes;
use ports::BusError;
use ports::artifacts::Artifacts;
use proto::hash::artifact_id;
use proto::ids::{ArtifactId, ThreadRef};
use proto::observation::ArtifactRef;
use rusqlite::Connection;

use crate::journal::check_size;
use crate::rows::{one, run, thread_key};
use crate::writer::Promise;
use crate::{ARTIFACT_LIMIT, SqliteBus};

#[async_trait]
impl Artifacts for SqliteBus {
    async fn put(&self, thread: &ThreadRef, bytes: Bytes) -> Result<ArtifactRef, BusError> {
        check_size(&bytes, ARTIFACT_LIMIT)?;
        let key = thread_key(thread);
        let length = bytes.len();
        let (id, known) = self.name(key.clone(), bytes.clone()).await?;
        if !known {
            let name = id.clone();
            // Soft is enough: a record that names it is synced after it, in the same log.
            let put = self.inner.writer.run(Promise::Soft, length, move |tx| {
                let sql = "INSERT OR IGNORE INTO artifacts(thread, id, bytes) VALUES (?1, ?2, ?3)";
                run(tx.conn, sql, (&key, name.as_str(), bytes.as_ref())).map(drop)
            });
            put.await?;
        }
        Ok(ArtifactRef { id, bytes: u64::try_from(length).unwrap_or(u64::MAX) })
    }

    async fn get(&self, thread: &ThreadRef, id: &ArtifactId) -> Result<Option<Bytes>, BusError> {
        let (key, id) = (thread_key(thread), id.clone());
        self.inner.readers.run(move |conn| load(conn, &key, &id)).await
    }

    async fn remove(&self, thread: &ThreadRef, id: &ArtifactId) -> Result<(), BusError> {
        let (key, id) = (thread_key(thread), id.clone());
        let remove = self.inner.writer.run(Promise::Soft, 0, move |tx| {
            tx.effects.scrub = true;
            let sql = "DELETE FROM artifacts WHERE thread = ?1 AND id = ?2";
            run(tx.conn, sql, (&key, id.as_str())).map(drop)
        });
        Ok(remove.await?)
    }

    async fn erase(&self, thread: &ThreadRef) -> Result<(), BusError> {
        let key = thread_key(thread);
        let erase = self.inner.writer.run(Promise::Durable, 0, move |tx| {
            tx.effects.scrub = true;
            run(tx.conn, "DELETE FROM artifacts WHERE thread = ?1", [&key]).map(drop)
        });
        Ok(erase.await?)
    }
}

impl SqliteBus {
    /// The payload's name, and whether it is stored. Hashing megabytes is a reading thread's work.
    async fn name(&self, key: String, bytes: Bytes) -> Result<(ArtifactId, bool), BusError> {
        let look = move |conn: &Connection| {
            let id = artifact_id(&bytes);
            let sql = "SELECT 1 FROM artifacts WHERE thread = ?1 AND id = ?2";
            let found = one(conn, sql, (&key, id.as_str()), |_| Ok(()))?;
            Ok((id, found.is_some()))
        };
        self.inner.readers.run(look).await
    }
}

/// A stored payload.
pub(crate) fn load(
    conn: &Connection,
    key: &str,
    id: &ArtifactId,
) -> rusqlite::Result<Option<Bytes>> {
    let sql = "SELECT bytes FROM artifacts WHERE thread = ?1 AND id = ?2";
    one(conn, sql, (key, id.as_str()), |row| Ok(Bytes::from(row.get::<_, Vec<u8>>(0)?)))
}

//! Payloads in the object store, one object per thread and hash.

use async_nats::jetstream::object_store::{InfoErrorKind, ObjectMetadata, ObjectStore};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use ports::BusError;
use ports::artifacts::Artifacts;
use proto::hash::artifact_id;
use proto::ids::{ArtifactId, ThreadRef};
use proto::observation::ArtifactRef;
use tokio::io::AsyncReadExt;

use crate::connect::NatsBus;
use crate::layout::{ARTIFACTS_BUCKET, context};

/// The largest piece of a payload.
const LARGEST_CHUNK: usize = 128 * 1024;

fn unavailable(error: impl std::fmt::Display) -> BusError {
    BusError::Unavailable(error.to_string())
}

fn prefix(thread: &ThreadRef) -> String {
    format!("{}/{}/", thread.tenant, thread.thread)
}

fn object_name(thread: &ThreadRef, id: &ArtifactId) -> String {
    format!("{}{id}", prefix(thread))
}

impl NatsBus {
    async fn store(&self) -> Result<ObjectStore, BusError> {
        context(self).get_object_store(ARTIFACTS_BUCKET).await.map_err(unavailable)
    }

    /// What fits a message of this server.
    fn chunk_size(&self) -> usize {
        match self.client.max_payload() {
            0 => LARGEST_CHUNK,
            limit => LARGEST_CHUNK.min(limit),
        }
    }
}

/// Whether the object is there. Putting one again would take its chunks from under a reader.
async fn is_there(store: &ObjectStore, name: &str) -> Result<bool, BusError> {
    match store.info(name).await {
        Ok(info) => Ok(!info.deleted),
        Err(error) if error.kind() == InfoErrorKind::NotFound => Ok(false),
        Err(error) => Err(unavailable(error)),
    }
}

#[async_trait]
impl Artifacts for NatsBus {
    async fn put(&self, thread: &ThreadRef, bytes: Bytes) -> Result<ArtifactRef, BusError> {
        let id = artifact_id(&bytes);
        let name = object_name(thread, &id);
        let store = self.store().await?;
        if !is_there(&store, &name).await? {
            let mut reader: &[u8] = &bytes;
            let chunk_size = Some(self.chunk_size());
            let metadata = ObjectMetadata { name, chunk_size, ..ObjectMetadata::default() };
            store.put(metadata, &mut reader).await.map_err(unavailable)?;
        }
        Ok(ArtifactRef { id, bytes: u64::try_from(bytes.len()).unwrap_or(u64::MAX) })
    }

    async fn get(&self, thread: &ThreadRef, id: &ArtifactId) -> Result<Option<Bytes>, BusError> {
        let name = object_name(thread, id);
        let store = self.store().await?;
        if !is_there(&store, &name).await? {
            return Ok(None);
        }
        let mut object = store.get(name).await.map_err(unavailable)?;
        let mut bytes = Vec::new();
        let read = object.read_to_end(&mut bytes);
        match tokio::time::timeout(self.settings.request.saturating_mul(4), read).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => return Err(unavailable(error)),
            Err(_) => return Err(unavailable("an artifact did not arrive in time")),
        }
        // A store that lost its tail may give less than was put; what does not match is not there.
        Ok((artifact_id(&bytes) == *id).then(|| Bytes::from(bytes)))
    }

    async fn remove(&self, thread: &ThreadRef, id: &ArtifactId) -> Result<(), BusError> {
        let (name, store) = (object_name(thread, id), self.store().await?);
        if !is_there(&store, &name).await? {
            return Ok(());
        }
        store.delete(name).await.map_err(unavailable)
    }

    async fn erase(&self, thread: &ThreadRef) -> Result<(), BusError> {
        let store = self.store().await?;
        let prefix = prefix(thread);
        let mut objects = store.list().await.map_err(unavailable)?;
        let mut own = Vec::new();
        while let Some(object) = objects.next().await {
            let object = object.map_err(unavailable)?;
            if object.name.starts_with(&prefix) {
                own.push(object.name);
            }
        }
        for name in own {
            store.delete(name).await.map_err(unavailable)?;
        }
        Ok(())
    }
}

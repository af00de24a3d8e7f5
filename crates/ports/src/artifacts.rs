//! Payloads kept outside messages, addressed by their hash within a thread.

use async_trait::async_trait;
use bytes::Bytes;
use proto::ids::{ArtifactId, ThreadRef};
use proto::observation::ArtifactRef;

use crate::BusError;

/// Content-addressed payloads of a thread.
#[async_trait]
pub trait Artifacts: Send + Sync {
    /// Stores a payload; storing the same bytes again changes nothing.
    async fn put(&self, thread: &ThreadRef, bytes: Bytes) -> Result<ArtifactRef, BusError>;

    /// The payload, or `None` when it is not stored (any more).
    async fn get(&self, thread: &ThreadRef, id: &ArtifactId) -> Result<Option<Bytes>, BusError>;

    /// Removes one payload; one that is not there is removed already.
    async fn remove(&self, thread: &ThreadRef, id: &ArtifactId) -> Result<(), BusError>;

    /// Removes all payloads of a thread.
    async fn erase(&self, thread: &ThreadRef) -> Result<(), BusError>;
}

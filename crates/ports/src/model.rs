//! A language model that streams its reply.

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use proto::model::{ModelError, ModelEvent, ModelRequest};

/// A streaming reply: events, ended by [`ModelEvent::End`] or by one error. Dropping it closes the
/// connection.
pub type Reply = BoxStream<'static, Result<ModelEvent, ModelError>>;

/// One or several endpoints behind one name.
#[async_trait]
pub trait Model: Send + Sync {
    /// Asks. Retries before the first event are the adapter's business; after it there are none.
    async fn ask(&self, request: &ModelRequest) -> Result<Reply, ModelError>;
}

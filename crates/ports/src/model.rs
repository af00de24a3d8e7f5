//! A language model that streams its reply.

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use proto::model::{ModelError, ModelEvent, ModelRequest};
use proto::notice::Notice;

/// A streaming reply: events, ended by [`ModelEvent::End`] or by one error. Dropping it closes the
/// connection.
pub type Reply = BoxStream<'static, Result<ModelEvent, ModelError>>;

/// Hears what happens before the first event of a reply. It must not block.
pub trait Ear: Send + Sync {
    /// Something delays the reply.
    fn notice(&self, notice: Notice);

    /// This model is asked now; its events come next unless something else is told.
    fn asks(&self, model: &str);
}

/// Hears nothing.
#[derive(Clone, Copy, Debug)]
pub struct Deaf;

impl Ear for Deaf {
    fn notice(&self, _: Notice) {}

    fn asks(&self, _: &str) {}
}

/// One or several endpoints behind one name.
#[async_trait]
pub trait Model: Send + Sync {
    /// Asks. Retries before the first event are the adapter's business, and `ear` is told of them;
    /// after it there are none.
    async fn ask(&self, request: &ModelRequest, ear: &dyn Ear) -> Result<Reply, ModelError>;
}

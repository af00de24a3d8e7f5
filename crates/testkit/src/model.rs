//! A model whose replies are written by a test.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::{self, StreamExt};
use ports::model::{Ear, Model, Reply};
use proto::model::{Finish, ModelError, ModelEvent, ModelRequest, ReadyCall, ReplyEnd};
use tokio::time::sleep;

/// One step of a scripted reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Nothing for a while.
    Wait(Duration),
    /// An event.
    Event(ModelEvent),
    /// The stream breaks here.
    Break(ModelError),
}

/// What the script answers to a request: an error at once, or a stream.
pub type Script = dyn Fn(&ModelRequest) -> Result<Vec<Step>, ModelError> + Send + Sync;

/// Replies by a function of the request. Waits follow `tokio`'s clock.
#[derive(Clone)]
pub struct ScriptedModel {
    script: Arc<Script>,
}

impl ScriptedModel {
    /// A model that answers as `script` says.
    pub fn new(
        script: impl Fn(&ModelRequest) -> Result<Vec<Step>, ModelError> + Send + Sync + 'static,
    ) -> Self {
        Self { script: Arc::new(script) }
    }
}

#[async_trait]
impl Model for ScriptedModel {
    async fn ask(&self, request: &ModelRequest, ear: &dyn Ear) -> Result<Reply, ModelError> {
        ear.asks(&request.model);
        let steps = (self.script)(request)?;
        let events = stream::iter(steps).filter_map(|step| async move {
            match step {
                Step::Wait(span) => {
                    sleep(span).await;
                    None
                }
                Step::Event(event) => Some(Ok(event)),
                Step::Break(error) => Some(Err(error)),
            }
        });
        Ok(events.boxed())
    }
}

/// A piece of text.
pub fn text(delta: impl Into<String>) -> Step {
    Step::Event(ModelEvent::Text { delta: delta.into() })
}

/// A call that is ready at once.
pub fn call(
    position: u32,
    name: impl Into<String>,
    arguments: serde_json::Map<String, serde_json::Value>,
) -> Step {
    let name = name.into();
    Step::Event(ModelEvent::CallReady(ReadyCall { position, name, arguments, opaque: None }))
}

/// The end of a good reply.
pub fn end(finish: Finish) -> Step {
    Step::Event(ModelEvent::End(ReplyEnd {
        finish: Some(finish),
        usage: None,
        model: Some("scripted".to_owned()),
        confidence: None,
        answer: None,
        opaque: None,
    }))
}

//! What the user of a rehearsed case says while the run is under way. It is written down while the
//! model is asked for the turn during which it came, so it lies in the journal at the same place each
//! time: behind that turn's start and before its end.

use std::sync::Arc;

use async_trait::async_trait;
use ports::clock::Ids;
use ports::journal::Journal;
use ports::model::{Ear, Model, Reply};
use proto::ids::{InputKey, ThreadRef};
use proto::input::{InputBody, Message};
use proto::model::{ModelError, ModelErrorKind, ModelRequest};
use rehearsal::case::Steer;

use crate::engine::Ports;
use crate::failure::Failure;
use crate::follow::fold;
use crate::inputs;

/// A model whose user speaks meanwhile.
pub(crate) struct Steered {
    inner: Arc<dyn Model>,
    journal: Arc<dyn Journal>,
    ids: Arc<dyn Ids>,
    place: ThreadRef,
    steers: Vec<Steer>,
}

impl Steered {
    /// The same model in a run that is steered.
    pub(crate) fn new(
        inner: Arc<dyn Model>,
        ports: &Ports,
        place: ThreadRef,
        steers: Vec<Steer>,
    ) -> Self {
        let (journal, ids) = (Arc::clone(&ports.journal), Arc::clone(&ports.ids));
        Self { inner, journal, ids, place, steers }
    }

    async fn speak(&self) -> Result<(), Failure> {
        let thread = fold(&self.journal, &self.place).await?;
        let turn = thread.run.as_ref().map_or(0, |run| run.turns);
        say(&self.journal, self.ids.as_ref(), &self.place, &self.steers, turn).await
    }
}

/// Says what comes during a turn; each only once, however often it is said.
pub(crate) async fn say(
    journal: &Arc<dyn Journal>,
    ids: &dyn Ids,
    place: &ThreadRef,
    steers: &[Steer],
    turn: u32,
) -> Result<(), Failure> {
    for (index, steer) in steers.iter().enumerate().filter(|(_, steer)| steer.during == turn) {
        let key = InputKey::new(format!("steer-{index}"));
        let key = key.map_err(|error| Failure::other("a key", error))?;
        let body = InputBody::Steer(Message::text(&*steer.text));
        inputs::append(journal, ids, place, key, body).await?;
    }
    Ok(())
}

#[async_trait]
impl Model for Steered {
    async fn ask(&self, request: &ModelRequest, ear: &dyn Ear) -> Result<Reply, ModelError> {
        if let Err(failure) = self.speak().await {
            return Err(unsaid(&failure));
        }
        self.inner.ask(request, ear).await
    }
}

fn unsaid(failure: &Failure) -> ModelError {
    ModelError {
        kind: ModelErrorKind::BadResponse,
        retryable: false,
        retry_after: None,
        status: None,
        message: format!("the case's user could not speak: {failure}"),
        code: None,
    }
}

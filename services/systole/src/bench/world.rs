//! The product in this process, put together as every command does, with a counted journal.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ports::live::Subscription;
use ports::live::Topic;
use proto::fact::Outcome;
use proto::ids::ThreadRef;
use proto::input::InputBody;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::counted::Counted;
use super::files;
use crate::commands::Context;
use crate::engine::Engine;
use crate::failure::Failure;
use crate::inputs::{append, fresh_key, place};
use crate::launch::message;
use crate::staff::{Hands, Member, Staff};
use crate::wiring::{Store, endpoint};

/// No run of a bench takes longer.
const LONGEST: Duration = Duration::from_mins(1);

/// What runs.
pub(crate) struct Shape<'a> {
    pub(crate) url: &'a str,
    pub(crate) model: &'a str,
    pub(crate) early: &'a str,
    pub(crate) tools: &'a str,
    /// Whether what was answered survives a power cut.
    pub(crate) synced: bool,
}

/// Planner, worker and store at work.
pub(crate) struct World {
    store: Store,
    engine: Engine,
    pub(crate) journal: Arc<Counted>,
    agent: proto::ids::AgentName,
}

impl World {
    /// Starts it on the store that the command line names.
    pub(crate) async fn start(context: &Context, shape: &Shape<'_>) -> Result<Self, Failure> {
        let counted = OnceCell::new();
        let store = Store::open_measured(&context.common, shape.synced, |inner| {
            let journal = Arc::new(Counted::new(inner));
            counted.set(Arc::clone(&journal)).unwrap_or_default();
            journal
        })?;
        let Some(journal) = counted.into_inner() else {
            return Err(Failure::other("the bench", "the store has no journal"));
        };
        let text = files::agent(shape.model, shape.early, shape.tools);
        let loaded = files::loaded(text, &folder(&context.common.store), &context.environment)?;
        let model = endpoint(shape.url);
        let staff = Staff {
            members: vec![Member { loaded: &loaded, model: &model }],
            environment: &context.environment,
            hands: Hands::Real,
        };
        let mut engine = Engine::new(store.trouble());
        store.start(&mut engine, &staff).await?;
        Ok(Self { store, engine, journal, agent: loaded.agent.name })
    }

    /// A thread that nobody has used.
    pub(crate) fn fresh(&self) -> ThreadRef {
        let ports = self.store.ports();
        place(ports.ids.thread_id(ports.clock.now()))
    }

    /// Gives the thread its message.
    pub(crate) async fn begin(&self, place: &ThreadRef) -> Result<(), Failure> {
        let ports = self.store.ports();
        let body =
            InputBody::Message(message("Note some numbers.".to_owned(), &self.agent, &[], None));
        let key = fresh_key(ports.ids.as_ref());
        append(&ports.journal, ports.ids.as_ref(), place, key, body).await?;
        Ok(())
    }

    /// One run, from its message until its end is in the journal; anything but an answer fails.
    pub(crate) async fn run(&self, place: &ThreadRef) -> Result<Duration, Failure> {
        let finished = self.journal.when_finished(place).await;
        let began = Instant::now();
        self.begin(place).await?;
        match tokio::time::timeout(LONGEST, finished).await {
            Ok(Ok(Outcome::Answered)) => Ok(began.elapsed()),
            Ok(Ok(other)) => {
                Err(Failure::other("the bench", format!("a run ended as {other:?}, not answered")))
            }
            Ok(Err(_)) => Err(Failure::other("the bench", "a run ended unheard")),
            Err(_) => Err(self.stuck()),
        }
    }

    fn stuck(&self) -> Failure {
        match self.engine.trouble() {
            Some(error) => error.into(),
            None => Failure::other("the bench", format!("a run took longer than {LONGEST:?}")),
        }
    }

    /// What is said in a thread from this moment on.
    pub(crate) async fn listen(&self, place: &ThreadRef) -> Result<Box<dyn Subscription>, Failure> {
        Ok(self.store.ports().live.subscribe(&Topic::Text(place.clone())).await?)
    }

    /// Lets it end what it does.
    pub(crate) async fn stop(mut self) -> Result<(), Failure> {
        self.engine.stop().await;
        Ok(self.store.close().await?)
    }
}

fn folder(store: &Path) -> PathBuf {
    store.parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

//! The planner's tasks and their end.

use std::sync::Arc;

use ports::BusError;
use ports::queues::Queue;
use service_runtime::held::Held;
use service_runtime::server_time::ServerTime;
use service_runtime::shutdown::Shutdown;
use service_runtime::tasks::TaskSet;
use tokio::sync::{Mutex, Semaphore};
use tokio::time::Instant;

use crate::book::AgentBook;
use crate::config::{Config, PlannerPorts};
use crate::intake::take_in;
use crate::load::{Loader, Slots};
use crate::memory::indexing;
use crate::running::Running;
use crate::snapshots::{self, Snapshots};
use crate::sweep::{Contact, listen, sweep};
use crate::tools::{Spans, Tools};

/// What all tasks of a planner share.
pub(crate) struct Shared {
    pub(crate) ports: PlannerPorts,
    pub(crate) config: Config,
    pub(crate) book: AgentBook,
    pub(crate) clock: ServerTime,
    pub(crate) tools: Tools,
    pub(crate) slots: Slots,
    pub(crate) snapshots: Snapshots,
    pub(crate) running: Running,
    pub(crate) held: Held,
    pub(crate) handlings: Arc<Semaphore>,
    pub(crate) turns: Arc<Semaphore>,
    pub(crate) contact: Contact,
    /// Held while one journal is judged; when the next one may be.
    pub(crate) judging: Mutex<Option<Instant>>,
}

impl Shared {
    /// From what threads are folded.
    pub(crate) fn loader(&self) -> Loader<'_> {
        Loader {
            journal: self.ports.journal.as_ref(),
            working: self.ports.working.as_ref(),
            artifacts: self.ports.artifacts.as_ref(),
            metrics: &self.config.metrics,
        }
    }
}

/// A planner, ready to run.
pub struct Planner {
    shared: Arc<Shared>,
}

impl Planner {
    /// A planner of these agents.
    pub fn new(ports: PlannerPorts, book: AgentBook, config: Config) -> Self {
        let shared = Shared {
            clock: ServerTime::new(Arc::clone(&ports.clock))
                .telling(config.metrics.clock_ahead.clone()),
            tools: Tools::new(Arc::clone(&ports.registry), Spans::of(&config)),
            slots: Slots::default(),
            snapshots: Snapshots::default(),
            running: Running::new(),
            held: Held::default(),
            handlings: Arc::new(Semaphore::new(
                config.max_handlings.max(config.partitions.len().saturating_mul(4)),
            )),
            turns: Arc::new(Semaphore::new(config.max_turns_in_flight)),
            contact: Contact::default(),
            judging: Mutex::default(),
            ports,
            config,
            book,
        };
        Self { shared: Arc::new(shared) }
    }

    /// Works until `shutdown` drains, then finishes or hands back what it holds within the grace.
    pub async fn run(self, shutdown: Shutdown) -> Result<(), BusError> {
        let shared = self.shared;
        let slots = i64::try_from(shared.config.max_turns_in_flight).unwrap_or(i64::MAX);
        shared.config.metrics.turn_slots.set(slots);
        let me = &shared.config.instance;
        let answering = shared.ports.live.answer(me, shared.running.holds()).await?;
        shared.clock.measure(shared.ports.journal.as_ref()).await?;
        let mut background = TaskSet::new();
        let queues = Arc::clone(&shared.ports.queues);
        background.start("keep_alive", shared.held.clone().keep_alive(queues));
        background.start("sweep", sweep(Arc::clone(&shared)));
        background.start("listen", listen(Arc::clone(&shared)));
        background.start("snapshots", snapshots::keep(Arc::clone(&shared)));
        background.start("indexer", indexing::index(Arc::clone(&shared)));
        let mut intakes = TaskSet::new();
        for partition in &shared.config.partitions {
            for queue in [Queue::Inbox(*partition), Queue::Progress(*partition)] {
                let task = take_in(Arc::clone(&shared), queue, shutdown.clone());
                intakes.start("take_in", task);
            }
        }
        shutdown.draining().await;
        let in_time = intakes.finish(shared.config.grace.saturating_mul(2)).await;
        snapshots::keep_last(&shared).await;
        indexing::index_last(&shared).await;
        tracing::info!(in_time, "planner stopped");
        drop(answering);
        drop(background);
        Ok(())
    }
}

//! Planner and worker inside this process, and their end in two steps.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use ports::BusError;
use ports::artifacts::Artifacts;
use ports::clock::{Clock, Ids};
use ports::freezes::Freezes;
use ports::journal::Journal;
use ports::live::Live;
use ports::queues::Queues;
use ports::registry::Registry;
use ports::working_memory::WorkingMemory;
use service_runtime::shutdown::Shutdown;
use service_runtime::tasks::TaskSet;
use worker::executor::memory::ToolMemory;

use crate::watched::Trouble;

/// How long work that is under way may take once the end was asked for.
pub(crate) const GRACE: Duration = Duration::from_secs(5);
/// The same for the tasks around it.
const LATEST: Duration = Duration::from_secs(15);

/// The world of planner and worker.
#[derive(Clone)]
pub(crate) struct Ports {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) queues: Arc<dyn Queues>,
    pub(crate) live: Arc<dyn Live>,
    pub(crate) working: Arc<dyn WorkingMemory>,
    pub(crate) artifacts: Arc<dyn Artifacts>,
    pub(crate) registry: Arc<dyn Registry>,
    pub(crate) freezes: Arc<dyn Freezes>,
    /// Long-term memory, for tools.
    pub(crate) memory: Option<ToolMemory>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn Ids>,
}

/// What runs in this process.
pub(crate) struct Engine {
    shutdown: Shutdown,
    services: TaskSet,
    background: TaskSet,
    trouble: Trouble,
}

impl Engine {
    /// Nothing yet.
    pub(crate) fn new(trouble: Trouble) -> Self {
        let (services, background) = (TaskSet::new(), TaskSet::new());
        Self { shutdown: Shutdown::new(), services, background, trouble }
    }

    /// What every service listens to.
    pub(crate) fn shutdown(&self) -> Shutdown {
        self.shutdown.clone()
    }

    /// Starts a service, which ends by itself once the shutdown drains.
    pub(crate) fn start(
        &mut self,
        name: &'static str,
        service: impl Future<Output = Result<(), BusError>> + Send + 'static,
    ) {
        let trouble = self.trouble.clone();
        self.services.start(name, async move {
            if let Err(error) = service.await {
                trouble.insist(&error);
            }
        });
    }

    /// Starts something that is dropped at the end.
    pub(crate) fn start_background(
        &mut self,
        name: &'static str,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        self.background.start(name, task);
    }

    /// The first trouble that waiting does not cure.
    pub(crate) fn trouble(&self) -> Option<BusError> {
        self.trouble.first()
    }

    /// Lets the services finish what they hold, then ends the rest.
    pub(crate) async fn stop(&mut self) {
        self.shutdown.drain();
        if !self.services.finish(LATEST).await {
            tracing::warn!("a service did not end in time");
        }
        self.shutdown.abandon();
        self.background.finish(Duration::ZERO).await;
    }
}

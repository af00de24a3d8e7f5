//! The tools that workers offer, compiled once per change.

use std::sync::Arc;
use std::time::Duration;

use planner_core::toolbox::Toolbox;
use ports::registry::Registry;
use proto::tool::{Registration, ToolContract};
use tokio::sync::Mutex;
use tokio::time::Instant;

struct Known {
    read: Instant,
    registrations: Vec<Registration>,
    toolbox: Arc<Toolbox>,
}

/// The newest toolbox, at most `age` old.
pub(crate) struct Tools {
    registry: Arc<dyn Registry>,
    age: Duration,
    known: Mutex<Option<Known>>,
}

impl Tools {
    pub(crate) fn new(registry: Arc<dyn Registry>, age: Duration) -> Self {
        Self { registry, age, known: Mutex::new(None) }
    }

    /// The toolbox; the last known one when the registry does not answer.
    pub(crate) async fn current(&self) -> Arc<Toolbox> {
        let mut known = self.known.lock().await;
        if let Some(known) = known.as_ref().filter(|known| known.read.elapsed() < self.age) {
            return Arc::clone(&known.toolbox);
        }
        let registrations = match self.registry.registrations().await {
            Ok(registrations) => registrations,
            Err(error) => {
                tracing::warn!(%error, "the tool registry does not answer");
                return known.as_ref().map(|k| Arc::clone(&k.toolbox)).unwrap_or_default();
            }
        };
        let read = Instant::now();
        if let Some(known) = known.as_mut().filter(|known| known.registrations == registrations) {
            known.read = read;
            return Arc::clone(&known.toolbox);
        }
        let toolbox = Arc::new(compile(&registrations));
        *known = Some(Known { read, registrations, toolbox: Arc::clone(&toolbox) });
        toolbox
    }
}

fn compile(registrations: &[Registration]) -> Toolbox {
    let contracts: Vec<ToolContract> =
        registrations.iter().flat_map(|registration| registration.tools.clone()).collect();
    let (toolbox, broken) = Toolbox::new(contracts);
    for tool in broken {
        tracing::error!(%tool, "the tool's argument schema cannot be compiled; it is not offered");
    }
    toolbox
}

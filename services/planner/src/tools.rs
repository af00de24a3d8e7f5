//! The tools that workers offer, compiled once per change.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use planner_core::toolbox::Toolbox;
use ports::registry::Registry;
use proto::ids::ToolName;
use proto::tool::{Registration, ToolContract};
use tokio::sync::Mutex;
use tokio::time::Instant;

struct Known {
    read: Instant,
    contracts: BTreeMap<ToolName, ToolContract>,
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
        let contracts = contracts(registrations);
        if let Some(known) = known.as_mut().filter(|known| known.contracts == contracts) {
            known.read = read;
            return Arc::clone(&known.toolbox);
        }
        let toolbox = Arc::new(compile(&contracts));
        *known = Some(Known { read, contracts, toolbox: Arc::clone(&toolbox) });
        toolbox
    }
}

/// One contract per tool: workers of one kind offer the same, and come and go.
fn contracts(registrations: Vec<Registration>) -> BTreeMap<ToolName, ToolContract> {
    let offered = registrations.into_iter().flat_map(|registration| registration.tools);
    offered.map(|contract| (contract.name.clone(), contract)).collect()
}

fn compile(contracts: &BTreeMap<ToolName, ToolContract>) -> Toolbox {
    let (toolbox, broken) = Toolbox::new(contracts.values().cloned());
    for tool in broken {
        tracing::error!(%tool, "the tool's argument schema cannot be compiled; it is not offered");
    }
    toolbox
}

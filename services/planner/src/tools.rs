//! The tools that workers offer, compiled once per change.
//!
//! Workers come and go: a tool stays on offer for a while after its last worker, and a turn waits for
//! a tool of its agent that nobody has offered yet, so that no model is asked without its tools only
//! because a worker was restarted or came second.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use planner_core::toolbox::{FINISH, Toolbox};
use ports::registry::Registry;
use proto::ids::ToolName;
use proto::tool::{Registration, ToolContract};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use crate::config::Config;

/// Between two looks for a tool that is waited for.
const LOOK: Duration = Duration::from_millis(250);

/// How long things hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spans {
    age: Duration,
    wait: Duration,
    kept: Duration,
}

impl Spans {
    pub(crate) fn of(config: &Config) -> Self {
        Self { age: config.tools_age, wait: config.tools_wait, kept: config.tools_kept }
    }
}

/// A contract and when it was last on offer.
#[derive(Clone, Debug)]
struct Offer {
    contract: ToolContract,
    seen: Instant,
}

#[derive(Default)]
struct Known {
    read: Option<Instant>,
    offers: BTreeMap<ToolName, Offer>,
    toolbox: Arc<Toolbox>,
    /// Tools that were waited for in vain; they are not waited for again until they are seen.
    missed: BTreeSet<ToolName>,
}

/// The newest toolbox, at most `age` old.
pub(crate) struct Tools {
    registry: Arc<dyn Registry>,
    spans: Spans,
    known: Mutex<Known>,
}

impl Tools {
    pub(crate) fn new(registry: Arc<dyn Registry>, spans: Spans) -> Self {
        Self { registry, spans, known: Mutex::default() }
    }

    /// The toolbox once it has all of `wanted`, or what there is after a while.
    pub(crate) async fn with(&self, wanted: &[ToolName]) -> Arc<Toolbox> {
        let latest = Instant::now() + self.spans.wait;
        let mut age = self.spans.age;
        loop {
            let mut known = self.known.lock().await;
            self.renew(&mut known, age).await;
            let missing = known.missing(wanted);
            if missing.is_empty() || Instant::now() >= latest {
                if !missing.is_empty() {
                    tracing::warn!(?missing, "nobody offers these tools; the turn goes on");
                }
                known.missed.extend(missing);
                return Arc::clone(&known.toolbox);
            }
            drop(known);
            sleep(LOOK).await;
            age = Duration::ZERO;
        }
    }

    /// Reads the offers anew if they are older than `age`; the last known ones stay when the registry
    /// does not answer.
    async fn renew(&self, known: &mut Known, age: Duration) {
        if known.read.is_some_and(|read| read.elapsed() < age) {
            return;
        }
        match self.registry.registrations().await {
            Ok(registrations) => known.take(registrations, self.spans.kept),
            Err(error) => tracing::warn!(%error, "the tool registry does not answer"),
        }
    }
}

impl Known {
    /// One contract per tool: workers of one kind offer the same.
    fn take(&mut self, registrations: Vec<Registration>, kept: Duration) {
        let now = Instant::now();
        let mut offers = self.offers.clone();
        offers.retain(|_, offer| !kept.is_zero() && offer.seen.elapsed() < kept);
        for contract in registrations.into_iter().flat_map(|registration| registration.tools) {
            self.missed.remove(&contract.name);
            offers.insert(contract.name.clone(), Offer { contract, seen: now });
        }
        let same = offers.len() == self.offers.len()
            && offers.values().zip(self.offers.values()).all(|(a, b)| a.contract == b.contract);
        if !same {
            self.toolbox = Arc::new(compile(&offers));
        }
        self.offers = offers;
        self.read = Some(now);
    }

    fn missing(&self, wanted: &[ToolName]) -> Vec<ToolName> {
        let is_missing = |name: &&ToolName| {
            name.as_str() != FINISH
                && !self.offers.contains_key(*name)
                && !self.missed.contains(*name)
        };
        wanted.iter().filter(is_missing).cloned().collect()
    }
}

fn compile(offers: &BTreeMap<ToolName, Offer>) -> Toolbox {
    let (toolbox, broken) = Toolbox::new(offers.values().map(|offer| offer.contract.clone()));
    for tool in broken {
        tracing::error!(%tool, "the tool's argument schema cannot be compiled; it is not offered");
    }
    toolbox
}

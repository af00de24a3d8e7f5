//! What a worker is given.

use std::sync::Arc;
use std::time::Duration;

use ports::append::Patience;
use ports::artifacts::Artifacts;
use ports::clock::{Clock, Ids};
use ports::freezes::Freezes;
use ports::journal::Journal;
use ports::live::Live;
use ports::queues::Queues;
use ports::registry::Registry;
use ports::working_memory::WorkingMemory;
use proto::ids::{InstanceId, Partition};
use tool_core::redact::Redactor;

use crate::metrics::Metrics;
use crate::room::Least;

/// The world of a worker.
#[derive(Clone)]
#[expect(missing_docs, reason = "each field is the port of that name")]
pub struct WorkerPorts {
    pub journal: Arc<dyn Journal>,
    pub queues: Arc<dyn Queues>,
    pub live: Arc<dyn Live>,
    pub working: Arc<dyn WorkingMemory>,
    pub artifacts: Arc<dyn Artifacts>,
    pub registry: Arc<dyn Registry>,
    pub freezes: Arc<dyn Freezes>,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn Ids>,
}

impl WorkerPorts {
    /// All ports of one bus that has them all.
    pub fn of<B>(bus: &Arc<B>, clock: Arc<dyn Clock>, ids: Arc<dyn Ids>) -> Self
    where
        B: Journal + Queues + Live + WorkingMemory + Artifacts + Registry + Freezes + 'static,
    {
        Self {
            journal: Arc::<B>::clone(bus),
            queues: Arc::<B>::clone(bus),
            live: Arc::<B>::clone(bus),
            working: Arc::<B>::clone(bus),
            artifacts: Arc::<B>::clone(bus),
            registry: Arc::<B>::clone(bus),
            freezes: Arc::<B>::clone(bus),
            clock,
            ids,
        }
    }
}

/// Settings of a worker.
#[derive(Clone, Debug)]
pub struct WorkerConfig {
    /// This life of this process.
    pub instance: InstanceId,
    /// The host's name, for start records.
    pub host: String,
    /// The partitions it serves.
    pub partitions: Vec<Partition>,
    /// Calls worked on at once.
    pub slots: usize,
    /// Between an attempt's limit and the moment at which it is certainly gone. It also bounds how
    /// long a claim may take before the effect begins.
    pub grace: Duration,
    /// How long a shutdown waits for calls that are under way; what runs longer is ended.
    pub drain: Duration,
    /// How long a repeatable call is ours without a renewal.
    pub lease: Duration,
    /// How long a pull waits; short, so that a dead process's pull is soon forgotten by the bus.
    pub pull_wait: Duration,
    /// How long results are kept; many times the longest deadline of a call.
    pub keep_results: Duration,
    /// How old the list of freezes may be for a call that may be repeated.
    pub freeze_lag: Duration,
    /// Between two renewals of the tools on offer.
    pub offer_every: Duration,
    /// For unanswered appends.
    pub patience: Patience,
    /// What keeps secrets out of results.
    pub redactor: Arc<Redactor>,
    /// What the machine must have left before another call begins.
    pub least_room: Least,
    /// What is counted.
    pub metrics: Metrics,
}

impl WorkerConfig {
    /// Defaults for one partition.
    pub fn new(instance: InstanceId, host: impl Into<String>) -> Self {
        Self {
            instance,
            host: host.into(),
            partitions: vec![Partition(0)],
            slots: 16,
            grace: Duration::from_secs(5),
            drain: Duration::from_secs(5),
            lease: Duration::from_secs(15),
            pull_wait: Duration::from_secs(2),
            keep_results: Duration::from_hours(24),
            freeze_lag: Duration::ZERO,
            offer_every: Duration::from_secs(10),
            patience: Patience::default(),
            redactor: Redactor::standard(),
            least_room: Least::default(),
            metrics: Metrics::new(),
        }
    }
}

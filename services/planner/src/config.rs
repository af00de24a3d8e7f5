//! What a planner is given.

use std::sync::Arc;
use std::time::Duration;

use planner_core::view::Spans;
use ports::append::Patience;
use ports::artifacts::Artifacts;
use ports::clock::{Clock, Ids};
use ports::journal::Journal;
use ports::live::Live;
use ports::model::Model;
use ports::queues::Queues;
use ports::registry::Registry;
use ports::working_memory::WorkingMemory;
use proto::ids::{InstanceId, Partition};

use crate::memory::Memory;
use crate::metrics::Metrics;
pub use crate::snapshots::SnapshotRule;

/// The world of a planner.
#[derive(Clone)]
#[expect(missing_docs, reason = "each field is the port of that name")]
pub struct PlannerPorts {
    pub journal: Arc<dyn Journal>,
    pub queues: Arc<dyn Queues>,
    pub live: Arc<dyn Live>,
    pub working: Arc<dyn WorkingMemory>,
    pub artifacts: Arc<dyn Artifacts>,
    pub registry: Arc<dyn Registry>,
    pub model: Arc<dyn Model>,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn Ids>,
}

/// Settings of a planner.
#[derive(Clone, Debug)]
pub struct Config {
    /// This life of this process.
    pub instance: InstanceId,
    /// The partitions it serves.
    pub partitions: Vec<Partition>,
    /// Model requests open at once.
    pub max_turns_in_flight: usize,
    /// Deliveries looked at at once, model requests not counted.
    pub max_handlings: usize,
    /// How long a pull waits; short, so that a dead process's pull is soon forgotten by the bus.
    pub pull_wait: Duration,
    /// How long the owner of a turn may take to answer a question.
    pub ask_patience: Duration,
    /// Between two looks at threads that nothing woke.
    pub sweep_every: Duration,
    /// How old the list of tools may be.
    pub tools_age: Duration,
    /// How long a turn waits for tools of its agent that nobody has offered yet.
    pub tools_wait: Duration,
    /// How long a tool stays on offer after the last worker that offered it.
    pub tools_kept: Duration,
    /// Model requests of one turn after the first failed without a trace.
    pub model_retries: u32,
    /// Pause before the first of them; doubles.
    pub model_backoff: Duration,
    /// How long checking an answer against its schema may take.
    pub evaluation: Duration,
    /// How long to wait at shutdown for what is under way.
    pub grace: Duration,
    /// For unanswered appends.
    pub patience: Patience,
    /// For decisions.
    pub spans: Spans,
    /// Runs after which a thread is kept as a state; the records of at least as many stay. Without it
    /// all records stay.
    pub keep_runs: Option<u32>,
    /// When a fold is kept in working memory.
    pub snapshots: SnapshotRule,
    /// What is counted.
    pub metrics: Metrics,
    /// Long-term memory; without it nothing is recalled or kept.
    pub memory: Option<Memory>,
    /// Whether journals of ended runs are held against the invariants, one at a time.
    pub judges: bool,
}

impl Config {
    /// Defaults for one partition.
    pub fn new(instance: InstanceId) -> Self {
        Self {
            instance,
            partitions: vec![Partition(0)],
            max_turns_in_flight: 2048,
            max_handlings: 64,
            pull_wait: Duration::from_secs(2),
            ask_patience: Duration::from_secs(1),
            sweep_every: Duration::from_mins(1),
            tools_age: Duration::from_secs(2),
            tools_wait: Duration::ZERO,
            tools_kept: Duration::ZERO,
            model_retries: 3,
            model_backoff: Duration::from_millis(500),
            evaluation: Duration::from_secs(5),
            grace: Duration::from_secs(20),
            patience: Patience::default(),
            spans: Spans::default(),
            keep_runs: None,
            snapshots: SnapshotRule::default(),
            metrics: Metrics::new(),
            memory: None,
            judges: false,
        }
    }
}

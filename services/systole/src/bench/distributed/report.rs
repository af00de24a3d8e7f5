//! Everything that was measured over servers.

use serde::{Deserialize, Serialize};

use super::super::statistics::ratio;
use super::bare::Floor;
use super::fleet::Fleet;
use super::talking::Talking;
use super::waiting::{Streams, Waiting};

/// A process of the deployment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Process {
    pub(crate) name: String,
    /// Processor time during the measurement.
    pub(crate) cpu_seconds: f64,
    pub(crate) resident_mb: f64,
}

/// The product and the floor over the same servers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Pair {
    /// How JetStream kept what it was given.
    pub(crate) synced: bool,
    pub(crate) partitions: u16,
    /// One for each concurrency that was tried.
    pub(crate) floor: Vec<Floor>,
    pub(crate) product: Vec<Fleet>,
    /// Tool calls a second: the product's best by the floor's best.
    pub(crate) of_floor: f64,
    /// At the product's best.
    pub(crate) processes: Vec<Process>,
}

impl Pair {
    /// The same with what follows from it.
    #[must_use]
    pub(crate) fn with_ratio(mut self) -> Self {
        let floor = self.floor.iter().map(|floor| floor.calls_per_second).fold(0.0, f64::max);
        self.of_floor = ratio(best(&self.product), floor);
        self
    }
}

/// Tool calls a second at the best concurrency.
pub(crate) fn best(product: &[Fleet]) -> f64 {
    product.iter().map(|fleet| fleet.calls_per_second).fold(0.0, f64::max)
}

/// A slow model with many threads.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Slow {
    pub(crate) model_ms: u64,
    /// A run of it if nothing but the model took time.
    pub(crate) ideal_ms: f64,
    pub(crate) fleet: Fleet,
    pub(crate) over_ideal_p99_ms: f64,
    /// Requests that the model got, by the turns that needed one.
    pub(crate) requests_per_turn: f64,
    pub(crate) planners: usize,
    pub(crate) workers: usize,
    pub(crate) processes: Vec<Process>,
}

/// Planners of eight model requests at once and workers of four calls, a model of 200 ms and a tool of
/// 50 ms: their number is the limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Scale {
    pub(crate) planners: usize,
    pub(crate) workers: usize,
    pub(crate) fleet: Fleet,
}

/// Runs that wait for the model.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Idle {
    pub(crate) waiting: Waiting,
    pub(crate) planner_before_mb: f64,
    pub(crate) planner_mb: f64,
    pub(crate) bare: Streams,
    /// What the planner takes for a thread beyond the bare client, in KB.
    pub(crate) kb_per_thread: f64,
}

impl Idle {
    /// The same with what follows from it.
    #[must_use]
    pub(crate) fn with_difference(mut self) -> Self {
        let ours = self.planner_mb - self.planner_before_mb;
        let bare = self.bare.resident_mb - self.bare.before_mb;
        let threads = super::super::statistics::number(self.waiting.threads);
        self.kb_per_thread = ratio((ours - bare) * 1024.0, threads);
        self
    }
}

/// The whole bench.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Report {
    /// Whether it was the short form, whose numbers are only rough.
    pub(crate) quick: bool,
    pub(crate) cores: usize,
    /// The load average before the first measurement.
    pub(crate) load_before: f64,
    pub(crate) syncs_per_second: f64,
    /// One thread, nothing else: floor and product.
    pub(crate) unloaded_floor: Floor,
    pub(crate) unloaded: Fleet,
    /// JetStream's default flush first, then with every write synced.
    pub(crate) pairs: Vec<Pair>,
    pub(crate) slow: Vec<Slow>,
    pub(crate) scale: Vec<Scale>,
    pub(crate) idle: Idle,
    /// Replies that stream at once.
    pub(crate) talking: Vec<Talking>,
}

/// That part alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Streaming {
    /// Whether it was the short form, whose numbers are only rough.
    pub(crate) quick: bool,
    pub(crate) cores: usize,
    /// The load average before the measurement.
    pub(crate) load_before: f64,
    pub(crate) talking: Vec<Talking>,
}

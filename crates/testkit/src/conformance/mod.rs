//! One suite per port: every sentence of a contract as a rule with a name.
//!
//! An adapter implements [`BusHarness`] or [`MemoryHarness`], runs the suites and asserts that the
//! report is clean:
//!
//! ```ignore
//! let report = conformance::journal::all(&harness).await;
//! assert!(report.is_clean(), "{report}");
//! ```
//!
//! Rules run in the time the harness gives: virtual under a paused clock, else real, so ack waits
//! and fading times should be fractions of a second. No rule fails because a machine is slow.
//!
//! [`journal`] · [`schedules`] · [`queues`] · [`live`] · [`artifacts`] · [`registry`] ·
//! [`feed`] · [`freezes`] · [`working_memory`] · [`shared_cells`] · [`recall`]

pub mod artifacts;
pub mod feed;
pub mod freezes;
pub mod journal;
mod kit;
pub mod live;
pub mod queues;
pub mod recall;
pub mod registry;
pub mod schedules;
pub mod shared_cells;
pub mod working_memory;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::{self, StreamExt};
use ports::BusError;
use ports::artifacts::Artifacts;
use ports::feed::Feed;
use ports::freezes::Freezes;
use ports::journal::{AppendError, Journal};
use ports::live::Live;
use ports::queues::Queues;
use ports::recall::Recall;
use ports::registry::Registry;
use ports::working_memory::WorkingMemory;
use proto::ids::InstanceId;

/// How many rules run at the same time.
const AT_ONCE: usize = 4;

/// The ports of one process.
#[derive(Clone)]
pub struct Peer {
    /// Its journal.
    pub journal: Arc<dyn Journal>,
    /// Its queues.
    pub queues: Arc<dyn Queues>,
    /// Its live topics.
    pub live: Arc<dyn Live>,
    /// Its artifacts.
    pub artifacts: Arc<dyn Artifacts>,
    /// Its registry.
    pub registry: Arc<dyn Registry>,
    /// Its freezes.
    pub freezes: Arc<dyn Freezes>,
    /// Its facts.
    pub feed: Arc<dyn Feed>,
}

impl Peer {
    /// The ports of an adapter that implements them all.
    pub fn of<B>(bus: Arc<B>) -> Self
    where
        B: Journal + Queues + Live + Artifacts + Registry + Freezes + Feed + 'static,
    {
        Self {
            journal: Arc::<B>::clone(&bus),
            queues: Arc::<B>::clone(&bus),
            live: Arc::<B>::clone(&bus),
            artifacts: Arc::<B>::clone(&bus),
            registry: Arc::<B>::clone(&bus),
            freezes: Arc::<B>::clone(&bus),
            feed: bus,
        }
    }
}

/// How patient rules have to be.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// How long the adapter takes at most for what it should do at once.
    pub patience: Duration,
    /// How long a registration lasts; `None` when that is too long for a test.
    pub offer_ttl: Option<Duration>,
}

/// One empty bus.
#[async_trait]
pub trait BusWorld: Send + Sync {
    /// The view of one process; two names are two processes as far as the adapter has such.
    async fn peer(&self, process: &InstanceId) -> Peer;

    /// Ends every peer in an orderly way and opens what was stored; answers `false` when the
    /// adapter has nothing to reopen. Peers are asked for anew afterwards.
    async fn reopen(&self) -> bool;

    /// How patient to be.
    fn timing(&self) -> Timing;
}

/// Makes empty buses.
#[async_trait]
pub trait BusHarness: Send + Sync {
    /// An empty bus, apart from all others.
    async fn fresh(&self) -> Box<dyn BusWorld>;
}

/// One empty working memory.
#[async_trait]
pub trait MemoryWorld: Send + Sync {
    /// The view of one process.
    async fn peer(&self) -> Arc<dyn WorkingMemory>;

    /// The shortest lease and keeping time that the adapter tells apart from none.
    fn short(&self) -> Duration;

    /// How long the adapter takes at most for what it should do at once.
    fn patience(&self) -> Duration;
}

/// Makes empty working memories.
#[async_trait]
pub trait MemoryHarness: Send + Sync {
    /// An empty working memory, apart from all others.
    async fn fresh(&self) -> Box<dyn MemoryWorld>;
}

/// One empty long-term memory.
#[async_trait]
pub trait RecallWorld: Send + Sync {
    /// The view of one process.
    async fn peer(&self) -> Arc<dyn Recall>;

    /// Opens what was stored anew, after every peer was dropped; answers `false` when there is
    /// nothing to reopen.
    async fn reopen(&self) -> bool;
}

/// Makes empty long-term memories.
#[async_trait]
pub trait RecallHarness: Send + Sync {
    /// An empty one, apart from all others.
    async fn fresh(&self) -> Box<dyn RecallWorld>;
}

/// Why a rule did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Broken {
    /// It is violated.
    Violated(String),
    /// It could not be judged.
    Skipped(&'static str),
}

impl From<BusError> for Broken {
    fn from(error: BusError) -> Self {
        Self::Violated(format!("the adapter answered: {error}"))
    }
}

impl From<AppendError> for Broken {
    fn from(error: AppendError) -> Self {
        Self::Violated(format!("the adapter answered: {error}"))
    }
}

/// What came of one rule.
pub type Outcome = Result<(), Broken>;

/// A named rule.
pub struct Rule<W: ?Sized + 'static> {
    /// What it says.
    pub name: &'static str,
    /// Judges one empty world.
    pub check: for<'a> fn(&'a W) -> LocalBoxFuture<'a, Outcome>,
}

/// What came of a suite.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Rules that hold.
    pub held: Vec<&'static str>,
    /// Rules that are violated, and how.
    pub violated: Vec<(&'static str, String)>,
    /// Rules that could not be judged, and why.
    pub skipped: Vec<(&'static str, &'static str)>,
}

impl Report {
    /// Whether no rule is violated.
    pub fn is_clean(&self) -> bool {
        self.violated.is_empty()
    }

    fn add(&mut self, name: &'static str, outcome: Outcome) {
        match outcome {
            Ok(()) => self.held.push(name),
            Err(Broken::Violated(how)) => self.violated.push((name, how)),
            Err(Broken::Skipped(why)) => self.skipped.push((name, why)),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, how) in &self.violated {
            writeln!(f, "violated: {name}: {how}")?;
        }
        for (name, why) in &self.skipped {
            writeln!(f, "skipped: {name}: {why}")?;
        }
        write!(f, "{} held", self.held.len())
    }
}

async fn run_bus(rules: &'static [Rule<dyn BusWorld>], harness: &dyn BusHarness) -> Report {
    let each = |rule: &'static Rule<dyn BusWorld>| async move {
        let world = harness.fresh().await;
        (rule.name, (rule.check)(&*world).await)
    };
    let outcomes = stream::iter(rules).map(each).buffered(AT_ONCE);
    outcomes.fold(Report::default(), add).await
}

async fn run_memory(
    rules: &'static [Rule<dyn MemoryWorld>],
    harness: &dyn MemoryHarness,
) -> Report {
    let each = |rule: &'static Rule<dyn MemoryWorld>| async move {
        let world = harness.fresh().await;
        (rule.name, (rule.check)(&*world).await)
    };
    let outcomes = stream::iter(rules).map(each).buffered(AT_ONCE);
    outcomes.fold(Report::default(), add).await
}

async fn run_recall(
    rules: &'static [Rule<dyn RecallWorld>],
    harness: &dyn RecallHarness,
) -> Report {
    let each = |rule: &'static Rule<dyn RecallWorld>| async move {
        let world = harness.fresh().await;
        (rule.name, (rule.check)(&*world).await)
    };
    let outcomes = stream::iter(rules).map(each).buffered(AT_ONCE);
    outcomes.fold(Report::default(), add).await
}

async fn add(mut report: Report, (name, outcome): (&'static str, Outcome)) -> Report {
    report.add(name, outcome);
    report
}

/// Lists the rules of a suite: `RULES`, and `all`, which judges them one fresh world each.
macro_rules! suite {
    ($world:ident, $harness:ident, $run:ident: $($name:ident),+ $(,)?) => {
        /// The rules of this suite.
        pub const RULES: &[$crate::conformance::Rule<dyn $crate::conformance::$world>] = &[
            $($crate::conformance::Rule {
                name: stringify!($name),
                check: |world| Box::pin($name(world)),
            }),+
        ];

        /// Judges every rule, each in a world of its own.
        pub async fn all(
            harness: &dyn $crate::conformance::$harness,
        ) -> $crate::conformance::Report {
            $crate::conformance::$run(RULES, harness).await
        }
    };
}
pub(crate) use suite;

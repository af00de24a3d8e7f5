//! An in-memory bus and working memory for tests and simulated worlds.
//!
//! Time is a base plus what `tokio`'s clock says has passed, so a paused runtime drives schedules,
//! ack waits and leases. Nothing here draws a random number or starts a task: what is due happens
//! before the next operation of anybody, in the order in which it was due.
//!
//! - [`faults`]: what a test may do to one operation
//! - `log`: records, fences, deduplication, schedules
//! - `consumers`: deliveries that are ready, held or resting
//! - `topics`: live text and the question whether an owner lives
//! - `handle`: what one process sees, as the ports
//! - [`working`]: working memory
//! - `names`: clock and ids

mod consumers;
pub mod faults;
mod handle;
mod handle_queues;
mod handle_working;
mod log;
mod names;
mod process;
mod topics;
pub mod working;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ports::journal::Stored;
use ports::queues::Queue;
use proto::freeze::{Freeze, FreezeTarget};
use proto::ids::{ArtifactId, InstanceId, Partition, Sequence, ThreadRef};
use proto::time::Timestamp;
use proto::tool::Registration;
use tokio::time::Instant;

use crate::lock::Lock;
use faults::{Faults, NoFaults};
pub use handle::BusHandle;
use log::Log;
pub use names::{MemoryClock, SeededIds};
use process::Process;
use topics::Topics;
use working::MemoryWorkingMemory;

/// How a memory bus behaves.
#[derive(Clone)]
pub struct Config {
    /// The server's time when the bus is made.
    pub base: Timestamp,
    /// How long a delivery is held without a sign of life.
    pub ack_wait: Duration,
    /// How long a deduplication id is remembered.
    pub dedup_window: Duration,
    /// How long a registration lasts unless renewed.
    pub offer_ttl: Duration,
    /// How long a caller waits for an answer that never comes.
    pub answer_timeout: Duration,
    /// What goes wrong.
    pub faults: Arc<dyn Faults>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            base: Timestamp(1_767_225_600_000),
            ack_wait: Duration::from_secs(6),
            dedup_window: Duration::from_mins(2),
            offer_ttl: Duration::from_secs(30),
            answer_timeout: Duration::from_secs(2),
            faults: Arc::new(NoFaults),
        }
    }
}

/// A bus in memory; clones are the same bus.
#[derive(Clone)]
pub struct MemoryBus {
    shared: Arc<Shared>,
}

struct Shared {
    config: Config,
    born: Instant,
    state: Lock<State>,
    topics: Topics,
    memory: MemoryWorkingMemory,
}

struct State {
    log: Log,
    artifacts: BTreeMap<ThreadRef, BTreeMap<ArtifactId, Bytes>>,
    offers: BTreeMap<InstanceId, (Instant, Arc<Registration>)>,
    frozen: BTreeMap<FreezeTarget, Freeze>,
    processes: BTreeMap<InstanceId, Arc<Process>>,
}

impl Default for MemoryBus {
    fn default() -> Self {
        Self::new(Config::default())
    }
}

impl MemoryBus {
    /// An empty bus.
    pub fn new(config: Config) -> Self {
        let state = State {
            log: Log::new(config.dedup_window, config.ack_wait),
            artifacts: BTreeMap::new(),
            offers: BTreeMap::new(),
            frozen: BTreeMap::new(),
            processes: BTreeMap::new(),
        };
        let memory = MemoryWorkingMemory::new();
        let shared = Shared {
            config,
            born: Instant::now(),
            state: Lock::new(state),
            topics: Topics::default(),
            memory,
        };
        Self { shared: Arc::new(shared) }
    }

    /// The view of one process. Handles of the same name belong to the same process.
    pub fn handle(&self, process: &InstanceId) -> BusHandle {
        let process_state = self.process(process);
        BusHandle::new(self.clone(), process.clone(), process_state)
    }

    /// The working memory behind all handles.
    pub fn working_memory(&self) -> &MemoryWorkingMemory {
        &self.shared.memory
    }

    /// The server's time.
    pub fn now(&self) -> Timestamp {
        self.shared.config.base.after(self.shared.born.elapsed())
    }

    /// How long ago the bus was made.
    pub fn elapsed(&self) -> Duration {
        self.shared.born.elapsed()
    }

    /// A clock that is `offset_ms` ahead of the server's (behind, if negative).
    pub fn clock(&self, offset_ms: i64) -> MemoryClock {
        MemoryClock::new(self.shared.config.base, self.shared.born, offset_ms)
    }

    /// The moment of the `tokio` clock at which the server's time is `at`.
    fn instant_of(&self, at: Timestamp) -> Instant {
        self.shared.born + at.since(self.shared.config.base)
    }

    fn process(&self, process: &InstanceId) -> Arc<Process> {
        let mut state = self.shared.state.lock();
        let known = state.processes.entry(process.clone()).or_default();
        Arc::clone(known)
    }

    /// Runs `change` after all that is due by now has happened, then tells the observer of every
    /// record that appeared.
    fn change<T>(&self, change: impl FnOnce(&mut State, Timestamp) -> T) -> T {
        let now = self.now();
        let (answer, fresh) = {
            let mut state = self.shared.state.lock();
            state.log.catch_up(now);
            let answer = change(&mut state, now);
            (answer, state.log.take_fresh())
        };
        for stored in fresh {
            self.shared.config.faults.stored(&stored);
        }
        answer
    }
}

/// What only the world around a test may do.
impl MemoryBus {
    /// The process is gone at once: none of its calls returns again, nobody answers to its name.
    pub fn kill(&self, process: &InstanceId) {
        self.process(process).kill();
        self.shared.topics.silence(process);
    }

    /// The process stands still for `span`: its calls return after that.
    pub fn pause(&self, process: &InstanceId, span: Duration) {
        self.process(process).pause_until(Instant::now() + span);
    }

    /// The process reaches nothing for `span`: its calls answer that nothing answers.
    pub fn cut_off(&self, process: &InstanceId, span: Duration) {
        self.process(process).cut_off_until(Instant::now() + span);
    }

    /// Whether the process is alive, running and connected.
    pub fn is_in_touch(&self, process: &InstanceId) -> bool {
        self.process(process).is_in_touch()
    }

    /// All records ever written, in the order of writing, from the `from`th on. Purged ones stay.
    pub fn history(&self, from: usize) -> Vec<Arc<Stored>> {
        self.change(|state, _| state.log.history(from))
    }

    /// The thread's records as the journal has them now.
    pub fn journal(&self, thread: &ThreadRef) -> Vec<Stored> {
        self.change(|state, _| state.log.read(thread, Sequence::NONE, usize::MAX))
    }

    /// Names of the artifacts of a thread.
    pub fn artifacts(&self, thread: &ThreadRef) -> Vec<ArtifactId> {
        let names = |state: &mut State, _| {
            let payloads = state.artifacts.get(thread);
            payloads.map(|payloads| payloads.keys().cloned().collect()).unwrap_or_default()
        };
        self.change(names)
    }

    /// All artifacts are lost.
    pub fn forget_artifacts(&self) {
        self.change(|state, _| state.artifacts.clear());
    }

    /// The newest records of a partition are lost, and their sequence numbers are used again.
    pub fn lose_tail(&self, partition: Partition, count: usize) -> Vec<Arc<Stored>> {
        self.change(|state, _| state.log.lose_tail(partition, count))
    }

    /// Acks of the last `span` are forgotten: those records are delivered again. Answers how many.
    pub fn forget_acks(&self, span: Duration) -> usize {
        self.change(|state, now| state.log.consumers.forget_acks(now.before(span)))
    }

    /// The queue's consumer is made anew: its whole history comes again with count 1.
    pub fn replay(&self, queue: &Queue) -> usize {
        self.change(|state, _| state.log.recreate(queue))
    }

    /// Queues that somebody has pulled from.
    pub fn queues(&self) -> Vec<Queue> {
        self.change(|state, _| state.log.consumers.queues())
    }

    /// When the thread's schedule will fire.
    pub fn armed(&self, thread: &ThreadRef) -> Option<Timestamp> {
        self.change(|state, _| state.log.scheduled(thread))
    }

    /// Drops the thread's schedule; answers whether there was one.
    pub fn lose_schedule(&self, thread: &ThreadRef) -> bool {
        self.change(|state, _| state.log.drop_schedule(thread))
    }

    /// Fires the thread's schedule now; with `keep` it will fire again when it is due.
    pub fn fire(&self, thread: &ThreadRef, keep: bool) -> bool {
        self.change(|state, now| state.log.fire_now(thread, keep, now))
    }

    /// Whether a planner queue still has a record of the thread that nobody acked.
    pub fn has_unacked(&self, thread: &ThreadRef) -> bool {
        self.change(|state, _| state.log.consumers.has_unacked(thread))
    }

    /// Records that nobody has acked, in every queue that exists.
    pub fn unacked(&self) -> Vec<(Queue, Arc<Stored>)> {
        self.change(|state, _| state.log.consumers.unacked())
    }

    /// Partitions that hold records.
    pub fn partitions(&self) -> Vec<Partition> {
        self.change(|state, _| state.log.partitions())
    }
}

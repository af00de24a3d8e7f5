//! The planners and workers of a world. A process is a slot that lives several lives; each life has
//! a name, a handle on the bus and a set of tasks, and dies with them.

use std::sync::Arc;
use std::time::Duration;

use planner::{AgentBook, Config, Planner, PlannerPorts};
use planner_core::view::Spans;
use ports::clock::Ids;
use proto::agent::{Agent, EarlyDispatch, Limits, Protocol, Verify};
use proto::hash::fingerprint;
use proto::ids::{AgentName, InstanceId};
use proto::tool::Effect;
use serde_json::json;
use service_runtime::shutdown::Shutdown;
use service_runtime::tasks::TaskSet;
use testkit::memory::{BusHandle, MemoryBus, SeededIds};
use worker::executor::Executor;
use worker::{Tool, Tools, Worker, WorkerConfig, WorkerPorts};

use crate::executor::{SimExecutor, SimProbe};
use crate::fault_kind::FaultKind;
use crate::model::{JSON_MODEL, SimModel};
use crate::shared::{Note, Shared};
use crate::tools::{TOOLS, contracts};

/// Between an attempt's limit and the moment at which it is certainly gone.
pub const GRACE: Duration = Duration::from_secs(2);

/// What a slot runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A planner.
    Planner,
    /// A worker.
    Worker,
}

/// One slot.
pub struct Process {
    role: Role,
    slot: usize,
    lives: u32,
    clock_offset_ms: i64,
    life: Option<Life>,
}

struct Life {
    name: InstanceId,
    shutdown: Shutdown,
    /// Dropping them is the death of the process.
    _tasks: TaskSet,
}

impl Process {
    /// An empty slot.
    pub fn new(role: Role, slot: usize, clock_offset_ms: i64) -> Self {
        Self { role, slot, lives: 0, clock_offset_ms, life: None }
    }

    /// The name of the life in progress.
    pub fn name(&self) -> Option<&InstanceId> {
        self.life.as_ref().map(|life| &life.name)
    }

    /// What it runs.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Begins a new life, unless one is in progress. A worker serves `tools`.
    pub fn start(&mut self, bus: &MemoryBus, shared: &Arc<Shared>, tools: &Tools, seed: u64) {
        if self.life.is_some() {
            return;
        }
        self.lives += 1;
        let letter = if self.role == Role::Planner { 'p' } else { 'w' };
        let text = format!("{letter}{}-{}", self.slot, self.lives);
        let name = InstanceId::new(text).expect("a valid name");
        shared.tell(|| format!("START {name}"));
        let ids: Arc<dyn Ids> = Arc::new(SeededIds::new(seed));
        let life = Birth { bus, shared, name, ids, clock_offset_ms: self.clock_offset_ms };
        self.life = Some(match self.role {
            Role::Planner => life.planner(),
            Role::Worker => life.worker(tools.clone()),
        });
    }

    /// Ends the life in progress at once.
    pub fn kill(&mut self, bus: &MemoryBus) {
        if let Some(life) = self.life.take() {
            bus.kill(&life.name);
        }
    }

    /// Asks the life in progress to end in an orderly way.
    pub fn drain(&self) {
        if let Some(life) = &self.life {
            life.shutdown.drain();
        }
    }
}

/// What a life begins with.
struct Birth<'a> {
    bus: &'a MemoryBus,
    shared: &'a Arc<Shared>,
    name: InstanceId,
    ids: Arc<dyn Ids>,
    clock_offset_ms: i64,
}

impl Birth<'_> {
    fn handle(&self) -> Arc<BusHandle> {
        Arc::new(self.bus.handle(&self.name))
    }

    fn planner(self) -> Life {
        let handle = self.handle();
        let ports = PlannerPorts {
            journal: Arc::<BusHandle>::clone(&handle),
            queues: Arc::<BusHandle>::clone(&handle),
            live: Arc::<BusHandle>::clone(&handle),
            working: Arc::<BusHandle>::clone(&handle),
            artifacts: Arc::<BusHandle>::clone(&handle),
            registry: handle,
            model: Arc::new(SimModel::new(Arc::clone(self.shared))),
            clock: Arc::new(self.bus.clock(self.clock_offset_ms)),
            ids: Arc::clone(&self.ids),
        };
        // Where a tail may be lost, the few records of a world are not purged as well.
        let purges = !self.shared.state().kinds.contains(&FaultKind::TailLost);
        let config = Config { keep_runs: purges.then_some(1), ..planner_config(&self.name) };
        let planner = Planner::new(ports, AgentBook::new(agents()), config);
        self.live(|shutdown| async move {
            if let Err(error) = planner.run(shutdown).await {
                tracing::warn!(%error, "a planner did not start");
            }
        })
    }

    fn worker(self, tools: Tools) -> Life {
        let handle = self.handle();
        let ports = WorkerPorts {
            journal: Arc::<BusHandle>::clone(&handle),
            queues: Arc::<BusHandle>::clone(&handle),
            live: Arc::<BusHandle>::clone(&handle),
            working: Arc::<BusHandle>::clone(&handle),
            artifacts: Arc::<BusHandle>::clone(&handle),
            registry: Arc::<BusHandle>::clone(&handle),
            freezes: handle,
            clock: Arc::new(self.bus.clock(self.clock_offset_ms)),
            ids: Arc::clone(&self.ids),
        };
        let config = worker_config(&self.name);
        let worker = Worker::new(ports, tools, config);
        self.live(|shutdown| worker.run(shutdown))
    }

    fn live<F>(self, run: impl FnOnce(Shutdown) -> F) -> Life
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let shutdown = Shutdown::new();
        let work = run(shutdown.clone());
        let (shared, name) = (Arc::clone(self.shared), self.name.clone());
        let mut tasks = TaskSet::new();
        tasks.start("process", async move {
            work.await;
            shared.note(Note::Ended(name));
        });
        Life { name: self.name, shutdown, _tasks: tasks }
    }
}

fn planner_config(name: &InstanceId) -> Config {
    let spans = Spans {
        schedule_to_start: Duration::from_secs(12),
        grace: Duration::from_secs(2),
        turn: Duration::from_secs(30),
        hand_back: Duration::from_secs(2),
        agent_wait: Duration::from_secs(20),
    };
    Config {
        max_turns_in_flight: 3,
        pull_wait: Duration::from_secs(20),
        sweep_every: Duration::from_secs(20),
        grace: Duration::from_secs(3),
        spans,
        ..Config::new(name.clone())
    }
}

fn worker_config(name: &InstanceId) -> WorkerConfig {
    WorkerConfig {
        slots: 12,
        grace: GRACE,
        drain: GRACE,
        lease: Duration::from_secs(6),
        pull_wait: Duration::from_secs(20),
        ..WorkerConfig::new(name.clone(), "sim")
    }
}

/// The tools of a world; all its workers serve the same.
pub fn tools(shared: &Arc<Shared>) -> Tools {
    let tools = Tools::new();
    for contract in contracts() {
        let executor = Arc::new(SimExecutor { shared: Arc::clone(shared) });
        let probe: Arc<dyn Executor> = Arc::new(SimProbe { shared: Arc::clone(shared) });
        let is_checkable = contract.effect == Effect::Checkable;
        let tool = Tool::new(contract, executor, is_checkable.then_some(probe));
        tools.add(tool.expect("the schemas are sound"));
    }
    tools
}

/// The name of an agent that plans with short limits, and the names of the others.
pub const AGENTS: [&str; 4] = ["plain", "eager", "short", "json"];

/// The name of an agent that no planner knows.
pub const GHOST: &str = "ghost";

fn agents() -> Vec<Agent> {
    AGENTS.iter().map(|name| agent(name)).collect()
}

fn agent(name: &str) -> Agent {
    let limits = Limits {
        max_turns: if name == "short" { 2 } else { 8 },
        max_wall_ms: 150_000,
        ..Limits::default()
    };
    let early_dispatch = match name {
        "eager" => EarlyDispatch::All,
        "short" => EarlyDispatch::Off,
        _ => EarlyDispatch::Safe,
    };
    Agent {
        name: AgentName::new(name).expect("a valid name"),
        role: "You test.".to_owned(),
        instructions: Vec::new(),
        model: if name == "json" { JSON_MODEL } else { "words" }.to_owned(),
        temperature: None,
        context_window: 64_000,
        context_window_ratio: 0.7,
        protocol: Protocol::Native,
        early_dispatch,
        tools: TOOLS.iter().map(crate::tools::ToolSpec::tool).collect(),
        permissions: Vec::new(),
        limits,
        end_intent: true,
        output_schema: (name == "json").then(|| json!({"type": "object", "required": ["mark"]})),
        fallbacks: Vec::new(),
        price: None,
        verify: if name == "eager" { Verify::Chain } else { Verify::Off },
        prices: std::collections::BTreeMap::new(),
        memory: proto::agent::MemoryUse::default(),
        profile: None,
        approval_ms: 12_000,
        fingerprint: fingerprint(name),
    }
}

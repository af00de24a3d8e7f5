//! A bus, a thread with dispatched calls, and workers that come and go.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use definitions::policy::Policy;
use ports::journal::{Append, Fence, Journal};
use ports::live::{Live, Topic};
use proto::call::{Barred, Start, Terms, ToolCall};
use proto::envelope::Envelope;
use proto::error_code::ErrorCode;
use proto::hash::{arguments_hash, fingerprint};
use proto::ids::{
    InstanceId, Nonce, Partition, Sequence, TenantId, ThreadId, ThreadRef, ToolCallId, ToolName,
};
use proto::live::Hint;
use proto::observation::Observation;
use proto::record::Record;
use proto::subject::{Leaf, Subject};
use proto::time::Timestamp;
use proto::tool::{Approval, Effect, Retry, ToolContract};
use serde_json::{Map, Value, json};
use service_runtime::shutdown::Shutdown;
use service_runtime::tasks::TaskSet;
use testkit::memory::{BusHandle, Config, MemoryBus, SeededIds};
use tokio::time::{Instant, sleep};
use worker::executor::Executor;
use worker::{Tool, Tools, Worker, WorkerConfig, WorkerPorts};

use crate::plan::Plan;
use crate::tool::ScriptedTool;

/// How long a condition may take, by the clock that jumps.
const PATIENCE: Duration = Duration::from_mins(10);

pub(crate) struct World {
    pub(crate) bus: MemoryBus,
    pub(crate) tool: ScriptedTool,
    pub(crate) contract: ToolContract,
    probe: Option<ScriptedTool>,
    pub(crate) policy: Policy,
    pub(crate) fallbacks: Vec<ScriptedTool>,
    planner: BusHandle,
    thread: ThreadRef,
    workers: u64,
    /// Of workers that begin from here on.
    pub(crate) freeze_lag: Duration,
}

/// A worker that runs.
pub(crate) struct Running {
    pub(crate) shutdown: Shutdown,
    pub(crate) tasks: TaskSet,
    /// What it serves.
    pub(crate) tools: Tools,
}

pub(crate) fn contract(effect: Effect) -> ToolContract {
    ToolContract {
        name: ToolName::new("restart").unwrap(),
        description: "Restarts.".into(),
        parameters: json!({"type": "object", "properties": {"service": {"type": "string"}}}),
        effect,
        timeout_ms: 3_000,
        retry: Retry::default(),
        deadlines: proto::tool::Deadlines::default(),
        approval: Approval::Never,
        permissions: vec![],
        result_tokens: 50,
        result_schema: None,
        fingerprint: fingerprint("v1"),
    }
}

pub(crate) fn instance(name: &str) -> InstanceId {
    InstanceId::new(name).unwrap()
}

pub(crate) fn call_id(name: &str) -> ToolCallId {
    ToolCallId::new(format!("{name:0>9}")).unwrap()
}

impl World {
    pub(crate) fn new(effect: Effect, tool: ScriptedTool) -> Self {
        Self::with(effect, tool, &Plan::none())
    }

    pub(crate) fn with(effect: Effect, tool: ScriptedTool, plan: &Plan) -> Self {
        let bus = MemoryBus::new(Config { faults: Arc::new(plan.clone()), ..Config::default() });
        let planner = bus.handle(&instance("planner"));
        let thread = ThreadRef {
            partition: Partition(0),
            tenant: TenantId::new("acme").unwrap(),
            thread: ThreadId::from_parts(1, 1),
        };
        let (contract, freeze_lag) = (contract(effect), Duration::ZERO);
        let (policy, fallbacks) = (Policy::default(), Vec::new());
        Self {
            bus,
            tool,
            contract,
            probe: None,
            policy,
            fallbacks,
            planner,
            thread,
            workers: 0,
            freeze_lag,
        }
    }

    pub(crate) fn with_probe(self, probe: ScriptedTool) -> Self {
        Self { probe: Some(probe), ..self }
    }

    /// Starts a worker; `w1` is the first.
    pub(crate) fn worker(&mut self) -> Running {
        self.workers += 1;
        let name = instance(&format!("w{}", self.workers));
        let clock = Arc::new(self.bus.clock(180_000));
        let ids = Arc::new(SeededIds::new(self.workers));
        let ports = WorkerPorts::of(&Arc::new(self.bus.handle(&name)), clock, ids);
        let tools = Tools::new();
        let probe: Option<Arc<dyn Executor>> = match self.probe.clone() {
            Some(probe) => Some(Arc::new(probe)),
            None => None,
        };
        let executor = Arc::new(self.tool.clone());
        let tool = Tool::new(self.contract.clone(), executor, probe).unwrap();
        let ways = self.fallbacks.iter().cloned().map(|way| -> Arc<dyn Executor> { Arc::new(way) });
        tools.add(tool.with_policy(self.policy.clone(), ways.collect()));
        let freeze_lag = self.freeze_lag;
        let config = WorkerConfig { slots: 4, freeze_lag, ..WorkerConfig::new(name, "host") };
        let worker = Worker::new(ports, tools.clone(), config);
        let shutdown = Shutdown::new();
        let mut tasks = TaskSet::new();
        tasks.start("worker", worker.run(shutdown.clone()));
        Running { shutdown, tasks, tools }
    }

    pub(crate) fn call(&self, name: &str) -> ToolCall {
        let arguments = Map::from_iter([("service".to_owned(), Value::from("web"))]);
        let start_by = self.bus.now().after(Duration::from_mins(1));
        ToolCall {
            tool_call_id: call_id(name),
            run: 1,
            turn: 1,
            position: 0,
            tool: self.contract.name.clone(),
            arguments_hash: arguments_hash(&arguments),
            arguments,
            terms: Terms {
                effect: self.contract.effect,
                fingerprint: fingerprint("v1"),
                timeout_ms: 3_000,
                retry: Retry::default(),
                deadlines: proto::tool::Deadlines::default(),
            },
            start_by,
            deadline: start_by.after(Duration::from_secs(30)),
            idempotency_key: format!("key-{name}"),
            approved: None,
            opaque: None,
        }
    }

    /// Dispatches a call in a thread of its own.
    pub(crate) async fn dispatch_in(&self, thread: u128, tenant: &str, name: &str) -> ThreadRef {
        let place = ThreadRef {
            partition: Partition(0),
            tenant: TenantId::new(tenant).unwrap(),
            thread: ThreadId::from_parts(2, thread),
        };
        let subject = Subject::new(place.clone(), self.tool_leaf());
        let record = Record::ToolCall(self.call(name));
        let payload = Envelope::new(nonce(), None, record).encode().into();
        let append = Append { subject, payload, nonce: nonce(), fence: Fence::None, dedup: None };
        self.planner.append(append).await.unwrap();
        place
    }

    pub(crate) async fn dispatch(&self, name: &str) {
        self.append(self.tool_leaf(), Record::ToolCall(self.call(name)), Fence::None).await;
    }

    pub(crate) fn tool_leaf(&self) -> Leaf {
        Leaf::ToolCall(self.contract.name.clone())
    }

    /// Appends a record as a planner.
    pub(crate) async fn append(&self, leaf: Leaf, record: Record, fence: Fence) -> bool {
        let bytes = Envelope::new(nonce(), None, record).encode();
        self.append_bytes(leaf, bytes.into(), fence).await.is_ok()
    }

    pub(crate) async fn append_bytes(
        &self,
        leaf: Leaf,
        payload: Bytes,
        fence: Fence,
    ) -> Result<Sequence, ports::journal::AppendError> {
        let subject = Subject::new(self.thread.clone(), leaf);
        let append = Append { subject, payload, nonce: nonce(), fence, dedup: None };
        self.planner.append(append).await.map(|done| done.sequence)
    }

    /// Bars a call as a planner; answers whether the bar won.
    pub(crate) async fn bar(&self, name: &str) -> bool {
        let (tool_call_id, by) = (call_id(name), instance("planner"));
        let barred = Barred { tool_call_id, by, at: self.bus.now() };
        let leaf = Leaf::Start(call_id(name));
        let record = Record::Start(Start::Barred(barred));
        self.append(leaf, record, Fence::Subject(Sequence::NONE)).await
    }

    /// Closes a call as a planner.
    pub(crate) async fn close(&self, name: &str) {
        let observation = Observation::synthesised(call_id(name), ErrorCode::TimedOut, "given up");
        let fact = proto::fact::Fact::CallClosed { observation };
        self.append(Leaf::Fact, Record::Fact(fact), Fence::None).await;
    }

    pub(crate) async fn hint_cancel(&self, name: &str) {
        let hint = Hint::CancelCall { tool_call_id: call_id(name) };
        let bytes = Bytes::from(serde_json::to_vec(&hint).unwrap());
        self.planner.publish(&Topic::Control(self.thread.clone()), bytes).await.unwrap();
    }

    pub(crate) async fn mark_cancelled(&self, name: &str) {
        use ports::working_memory::WorkingMemory as _;
        let keep = Duration::from_hours(1);
        self.planner.mark_cancelled(&self.thread, &call_id(name), keep).await.unwrap();
    }

    pub(crate) fn records(&self) -> Vec<Record> {
        let history = self.bus.history(0);
        let decoded = history.iter().filter_map(|stored| Envelope::decode(&stored.payload).ok());
        decoded.map(|envelope| envelope.body).collect()
    }

    pub(crate) fn observations(&self) -> Vec<Observation> {
        let observation = |record| {
            if let Record::Observation(observation) = record { Some(observation) } else { None }
        };
        self.records().into_iter().filter_map(observation).collect()
    }

    /// What the workers wrote, one line a record.
    pub(crate) fn story(&self) -> String {
        let line = |record: Record| match record {
            Record::Start(Start::Started(started)) => {
                Some(format!("start {} by {}", started.attempt, started.worker))
            }
            Record::Start(Start::Barred(barred)) => Some(format!("bar by {}", barred.by)),
            Record::Start(Start::Held(hold)) => Some(match &hold.holder {
                Some(by) => format!("{} held by {}", hold.resource, by.tool_call_id),
                None => format!("{} free", hold.resource),
            }),
            Record::Observation(seen) => Some(told(&seen)),
            Record::Input(_) | Record::Fact(_) | Record::ToolCall(_) | Record::Tick => None,
        };
        self.records().into_iter().filter_map(line).collect::<Vec<_>>().join("\n")
    }

    /// Waits until the condition holds.
    pub(crate) async fn until(&self, what: &str, condition: impl Fn(&Self) -> bool) {
        let began = Instant::now();
        while !condition(self) {
            assert!(began.elapsed() < PATIENCE, "{what} did not come\n{}", self.story());
            sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until every call is acknowledged.
    pub(crate) async fn until_acked(&self) {
        self.until("the last ack", |world| !world.has_open_calls()).await;
    }

    pub(crate) async fn until_effect(&self) {
        self.until("an effect", |world| !world.tool.effects().is_empty()).await;
    }

    pub(crate) fn has_open_calls(&self) -> bool {
        let is_call = |leaf: &Leaf| matches!(leaf, Leaf::ToolCall(_));
        let unacked = self.bus.unacked();
        self.bus.queues().is_empty()
            || unacked.iter().any(|(_, stored)| is_call(&stored.subject.leaf))
    }

    pub(crate) fn thread(&self) -> &ThreadRef {
        &self.thread
    }

    pub(crate) fn planner(&self) -> &BusHandle {
        &self.planner
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.bus.now()
    }
}

/// Appends of these tests are never repeated, so one nonce does for all.
fn nonce() -> Nonce {
    Nonce::new("00000000000000aa").unwrap()
}

fn told(seen: &Observation) -> String {
    let code = seen.code.map_or("ok", ErrorCode::as_str);
    let receipt = seen.receipt.map_or_else(String::new, |receipt| format!(" {receipt:?}"));
    format!("obs {} {code}{receipt}: {}", seen.attempt, seen.content.lines().last().unwrap_or(""))
}

//! A bus in memory, planners, a scripted model and a worker that answers at once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use planner::{AgentBook, Config, Metrics, Planner, PlannerPorts};
use ports::clock::Ids;
use ports::journal::{Append, Fence, Journal};
use ports::live::{Live as _, Subscription, Topic};
use ports::model::Model;
use ports::queues::{Queue, Queues};
use ports::registry::Registry;
use proto::agent::{Agent, EarlyDispatch, Limits, Price, Protocol, Verify};
use proto::envelope::Envelope;
use proto::fact::{Fact, RunFinished};
use proto::hash::fingerprint;
use proto::ids::{InputKey, InstanceId, Partition, TenantId, ThreadId, ThreadRef, ToolName};
use proto::input::{Input, InputBody, Message, Source};
use proto::observation::Observation;
use proto::record::{Placed, Record};
use proto::subject::{Leaf, Subject};
use proto::tool::{Approval, Effect, Registration, Retry, ToolContract};
use service_runtime::shutdown::Shutdown;
use service_runtime::tasks::TaskSet;
use testkit::memory::{BusHandle, MemoryBus, SeededIds};

/// A world with one thread.
pub(crate) struct World {
    pub(crate) bus: MemoryBus,
    pub(crate) place: ThreadRef,
    client: BusHandle,
    ids: SeededIds,
    model: Arc<dyn Model>,
    tasks: TaskSet,
    pub(crate) shutdown: Shutdown,
}

pub(crate) fn name(text: &str) -> InstanceId {
    InstanceId::new(text).unwrap()
}

impl World {
    pub(crate) async fn new(model: impl Model + 'static) -> Self {
        let bus = MemoryBus::default();
        let thread = ThreadId::from_parts(1, 1);
        let tenant = TenantId::new("acme").unwrap();
        let place = ThreadRef { partition: Partition(0), tenant, thread };
        let client = bus.handle(&name("client"));
        let tools = vec![tool("look", Effect::ReadOnly), tool("pay", Effect::Irreversible)];
        client.register(Registration { worker: name("worker"), tools }).await.unwrap();
        Self {
            bus,
            place,
            client,
            ids: SeededIds::new(7),
            model: Arc::new(model),
            tasks: TaskSet::new(),
            shutdown: Shutdown::new(),
        }
    }

    /// Starts a planner that lives until it is killed or drained; answers with what it counts.
    pub(crate) fn planner(&mut self, instance: &str, seed: u64) -> Metrics {
        self.planner_of(Config::new(name(instance)), seed)
    }

    /// The same, with other settings.
    pub(crate) fn planner_of(&mut self, config: Config, seed: u64) -> Metrics {
        self.planner_over(config, seed, |handle| handle)
    }

    /// The same, over a journal of its own kind.
    pub(crate) fn planner_over<J: Journal + 'static>(
        &mut self,
        config: Config,
        seed: u64,
        journal: impl FnOnce(Arc<BusHandle>) -> Arc<J>,
    ) -> Metrics {
        let handle = Arc::new(self.bus.handle(&config.instance));
        let ports = PlannerPorts {
            journal: journal(Arc::clone(&handle)),
            queues: Arc::<BusHandle>::clone(&handle),
            live: Arc::<BusHandle>::clone(&handle),
            working: Arc::<BusHandle>::clone(&handle),
            artifacts: Arc::<BusHandle>::clone(&handle),
            registry: handle,
            model: Arc::clone(&self.model),
            clock: Arc::new(self.bus.clock(0)),
            ids: Arc::new(SeededIds::new(seed)),
        };
        let metrics = config.metrics.clone();
        let planner = Planner::new(ports, AgentBook::new([agent()]), config);
        let shutdown = self.shutdown.clone();
        self.tasks.start("planner", async move { planner.run(shutdown).await.unwrap() });
        metrics
    }

    /// Answers every call of `tool` with `ok <tool>`.
    pub(crate) fn worker(&mut self, tool: &str) {
        let handle = self.bus.handle(&name("worker"));
        let queue = Queue::Tool(Partition(0), ToolName::new(tool).unwrap());
        self.tasks.start("worker", async move {
            loop {
                for delivery in handle.pull(&queue, 8, Duration::from_secs(2)).await.unwrap() {
                    let envelope = Envelope::decode(&delivery.stored.payload).unwrap();
                    let Record::ToolCall(call) = envelope.body else { panic!("not a call") };
                    let observation = Observation {
                        tool_call_id: call.tool_call_id,
                        attempt: 1,
                        code: None,
                        content: format!("ok {}", call.tool),
                        artifact: None,
                        receipt: None,
                        stamp: None,
                    };
                    let ids = SeededIds::new(delivery.stored.sequence.0 + 1000);
                    let place = delivery.stored.subject.thread.clone();
                    let record = Record::Observation(observation);
                    append(&handle, &ids, place, Leaf::Observation, record).await;
                    handle.ack(&delivery.token).await.unwrap();
                }
            }
        });
    }

    pub(crate) async fn say(&self, key: &str, body: InputBody) {
        let key = InputKey::new(key).unwrap();
        let record = Record::Input(Input { key, source: Source::Client, body });
        append(&self.client, &self.ids, self.place.clone(), Leaf::In, record).await;
    }

    pub(crate) async fn message(&self, key: &str, text: &str) {
        self.say(key, InputBody::Message(message(text))).await;
    }

    /// The thread's records, decoded.
    pub(crate) fn records(&self) -> Vec<Record> {
        let all = self.bus.history(0);
        let own = all.iter().filter(|stored| stored.subject.leaf != Leaf::Schedule);
        own.filter_map(|stored| Envelope::decode(&stored.payload).ok())
            .map(|envelope| envelope.body)
            .collect()
    }

    /// Lets virtual time pass until a record fits; the test fails after ten virtual minutes.
    pub(crate) async fn until(&self, what: &str, fits: impl Fn(&Record) -> bool) -> Record {
        for _ in 0..60_000 {
            if let Some(found) = self.records().into_iter().find(|record| fits(record)) {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{what} never happened:\n{}", self.trace());
    }

    /// What is said beside the journal from now on.
    pub(crate) async fn listen(&self) -> Box<dyn Subscription> {
        self.client.subscribe(&Topic::Text(self.place.clone())).await.unwrap()
    }

    /// Waits until so many turns were started.
    pub(crate) async fn until_started(&self, starts: usize) {
        let is_start = |record: &Record| matches!(record, Record::Fact(Fact::TurnStarted(_)));
        for _ in 0..6_000 {
            if self.records().iter().filter(|record| is_start(record)).count() >= starts {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{starts} starts never happened:\n{}", self.trace());
    }

    /// Lets the planners shut down in good order; later ones are not told to.
    pub(crate) async fn drain(&mut self) {
        self.shutdown.drain();
        tokio::time::sleep(Duration::from_secs(30)).await;
        self.shutdown = Shutdown::new();
    }

    pub(crate) async fn until_finished(&self) -> RunFinished {
        let is_end = |record: &Record| matches!(record, Record::Fact(Fact::RunFinished(_)));
        let end = self.until("the end of the run", is_end).await;
        let Record::Fact(Fact::RunFinished(finished)) = end else { panic!("not an end: {end:?}") };
        finished
    }

    /// One word per record.
    pub(crate) fn trace(&self) -> String {
        self.records().iter().map(word).collect::<Vec<_>>().join(" ")
    }

    /// What the journal holds now.
    pub(crate) fn left(&self) -> Vec<Placed> {
        self.bus.journal(&self.place).iter().map(|stored| stored.placed().unwrap()).collect()
    }

    /// One word per record that the journal holds now.
    pub(crate) fn trace_left(&self) -> String {
        self.left().iter().map(|placed| word(&placed.record)).collect::<Vec<_>>().join(" ")
    }
}

fn word(record: &Record) -> String {
    match record {
        Record::Fact(Fact::TurnStarted(turn)) => format!("started{}.{}", turn.turn, turn.start),
        Record::Fact(Fact::TurnCompleted(turn)) => format!("completed{}", turn.turn),
        Record::Fact(Fact::TurnSealed(turn)) => format!("sealed{}:{:?}", turn.turn, turn.why),
        Record::Fact(Fact::CallClosed { observation }) => {
            format!("closed:{}", observation.code.map_or("ok", |code| code.as_str()))
        }
        Record::Fact(Fact::RunFinished(end)) => format!("finished:{:?}", end.reason),
        Record::Fact(Fact::ApprovalAsked(_)) => "asked".to_owned(),
        Record::Fact(Fact::Parked { .. }) => "parked".to_owned(),
        Record::Fact(Fact::Checkpoint(_)) => "checkpoint".to_owned(),
        Record::Fact(Fact::Restored(_)) => "restored".to_owned(),
        Record::ToolCall(call) => format!("call:{}", call.tool),
        Record::Input(_) | Record::Start(_) | Record::Observation(_) | Record::Tick => {
            record.kind().to_owned()
        }
    }
}

pub(crate) fn message(text: &str) -> Message {
    Message { agent: Some("helper".parse().unwrap()), ..Message::text(text) }
}

async fn append(bus: &BusHandle, ids: &SeededIds, place: ThreadRef, leaf: Leaf, body: Record) {
    let nonce = ids.nonce();
    let payload = Bytes::from(Envelope::new(nonce.clone(), None, body).encode());
    let subject = Subject::new(place, leaf);
    let append = Append { subject, payload, nonce, fence: Fence::None, dedup: None };
    bus.append(append).await.unwrap();
}

fn tool(name: &str, effect: Effect) -> ToolContract {
    ToolContract {
        name: ToolName::new(name).unwrap(),
        description: format!("Does {name}."),
        parameters: serde_json::json!({"type": "object", "properties": {"n": {"type": "integer"}}}),
        effect,
        timeout_ms: 3000,
        retry: Retry::default(),
        deadlines: proto::tool::Deadlines::default(),
        approval: Approval::Never,
        permissions: Vec::new(),
        result_tokens: 300,
        result_schema: None,
        fingerprint: fingerprint(name),
    }
}

fn agent() -> Agent {
    Agent {
        name: "helper".parse().unwrap(),
        role: "You help.".to_owned(),
        instructions: Vec::new(),
        model: "scripted".to_owned(),
        temperature: None,
        context_window: 16_000,
        context_window_ratio: 0.7,
        protocol: Protocol::Native,
        early_dispatch: EarlyDispatch::Safe,
        tools: vec!["look".parse().unwrap(), "pay".parse().unwrap()],
        permissions: Vec::new(),
        limits: Limits::default(),
        end_intent: true,
        output_schema: None,
        fallbacks: Vec::new(),
        price: None,
        verify: Verify::Off,
        prices: BTreeMap::from([(
            "second".to_owned(),
            Price { input_nano_usd: 1000, output_nano_usd: 0 },
        )]),
        memory: proto::agent::MemoryUse::default(),
        profile: None,
        approval_ms: 60_000,
        fingerprint: fingerprint("helper"),
    }
}

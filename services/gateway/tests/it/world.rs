//! A bus in memory with a gateway, and a planner where a test wants one.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gateway::{Gateway, GatewayPorts, Metrics, Settings};
use planner::{AgentBook, Config, Planner, PlannerPorts};
use ports::clock::Ids;
use ports::journal::{Append, Fence, Journal};
use ports::live::{Live, Topic};
use ports::model::Model;
use ports::recall::Recall;
use ports::registry::Registry;
use proto::agent::{Agent, EarlyDispatch, Limits, Protocol, Verify};
use proto::envelope::Envelope;
use proto::hash::fingerprint;
use proto::ids::{InstanceId, Partition, Sequence, TenantId, ThreadId, ThreadRef, ToolName};
use proto::live::{Channel, LiveText};
use proto::record::Record;
use proto::subject::{Leaf, Subject};
use proto::tool::{Approval, Effect, Registration, Retry, ToolContract};
use serde_json::{Value, json};
use service_runtime::health::Health;
use service_runtime::shutdown::Shutdown;
use service_runtime::tasks::TaskSet;
use testkit::memory::{BusHandle, MemoryBus, SeededIds};
use tokio::net::TcpListener;

use crate::client::{Answer, Events, ask};

/// One gateway over one bus.
pub(crate) struct World {
    pub(crate) bus: MemoryBus,
    pub(crate) address: SocketAddr,
    pub(crate) health: Health,
    pub(crate) shutdown: Shutdown,
    pub(crate) tasks: TaskSet,
    stranger: BusHandle,
    ids: SeededIds,
}

fn name(text: &str) -> InstanceId {
    InstanceId::new(text).unwrap()
}

pub(crate) fn tenant(text: &str) -> TenantId {
    TenantId::new(text).unwrap()
}

pub(crate) fn settings() -> Settings {
    Settings { listen: SocketAddr::from(([127, 0, 0, 1], 0)), ..Settings::new(tenant("default")) }
}

pub(crate) fn place(thread: &str) -> ThreadRef {
    let thread = thread.parse().unwrap();
    ThreadRef { partition: Partition(0), tenant: tenant("default"), thread }
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(settings()).await
    }

    pub(crate) async fn with(settings: Settings) -> Self {
        let bus = MemoryBus::default();
        let journal = Arc::new(bus.handle(&name("gateway")));
        Self::over(bus, journal, settings).await
    }

    /// A gateway that reads another journal than that of the bus.
    pub(crate) async fn over(
        bus: MemoryBus,
        journal: Arc<dyn Journal>,
        settings: Settings,
    ) -> Self {
        Self::built((bus, journal), settings, None).await
    }

    /// A gateway with a long-term memory.
    pub(crate) async fn remembering(settings: Settings, memory: Arc<dyn Recall>) -> Self {
        let bus = MemoryBus::default();
        let journal = Arc::new(bus.handle(&name("gateway")));
        Self::built((bus, journal), settings, Some(memory)).await
    }

    async fn built(
        (bus, journal): (MemoryBus, Arc<dyn Journal>),
        settings: Settings,
        memory: Option<Arc<dyn Recall>>,
    ) -> Self {
        let handle = Arc::new(bus.handle(&name("gateway")));
        let ports = GatewayPorts {
            journal,
            live: Arc::<BusHandle>::clone(&handle),
            working: handle,
            clock: Arc::new(bus.clock(0)),
            ids: Arc::new(SeededIds::new(11)),
        };
        assert_eq!(settings.problems(), Vec::<String>::new());
        let (shutdown, mut tasks) = (Shutdown::new(), TaskSet::new());
        let listener = TcpListener::bind(settings.listen).await.unwrap();
        let address = listener.local_addr().unwrap();
        let health = Health::starting();
        let gateway =
            Gateway::new(ports, settings, Metrics::new(), health.clone(), shutdown.clone());
        let gateway = gateway.remembering(memory);
        tasks.start("gateway", async move { gateway.serve(listener).await.unwrap() });
        let stranger = bus.handle(&name("stranger"));
        Self { bus, address, health, shutdown, tasks, stranger, ids: SeededIds::new(23) }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        ask(self.address, &format!("GET {path}"), &[], None).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.post_with(path, &[], body).await
    }

    pub(crate) async fn post_with(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> Answer {
        ask(self.address, &format!("POST {path}"), headers, Some(body)).await
    }

    /// Begins a thread; answers with its id.
    pub(crate) async fn begin(&self, text: &str) -> String {
        let body = json!({ "agent": "helper", "input": { "text": text } });
        let answer = self.post("/v1/threads", &body).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.body["thread"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn events(&self, thread: &str) -> Events {
        Events::open(self.address, thread, &[]).await.unwrap()
    }

    pub(crate) async fn events_after(&self, thread: &str, id: &str) -> Events {
        Events::open(self.address, thread, &[("last-event-id", id)]).await.unwrap()
    }

    /// Writes a record past the gateway.
    pub(crate) async fn append(&self, thread: &str, leaf: Leaf, record: Record) -> Sequence {
        let nonce = self.ids.nonce();
        append(&self.stranger, &place(thread), leaf, record, nonce).await
    }

    /// Says a piece of live text.
    pub(crate) async fn say(&self, thread: &str, started: Sequence, offset: u64, delta: &str) {
        let (channel, delta) = (Channel::Text, delta.to_owned());
        let piece = LiveText { started, turn: 1, offset, channel, delta };
        let bytes = Bytes::from(serde_json::to_vec(&piece).unwrap());
        self.stranger.publish(&Topic::Text(place(thread)), bytes).await.unwrap();
    }

    /// Working memory as a planner has it.
    pub(crate) fn working(&self) -> &BusHandle {
        &self.stranger
    }

    /// Starts a planner.
    pub(crate) async fn planner(&mut self, model: impl Model + 'static) {
        let handle = Arc::new(self.bus.handle(&name("planner")));
        let tools = vec![tool("look", Effect::ReadOnly), tool("pay", Effect::Irreversible)];
        handle.register(Registration { worker: name("worker"), tools }).await.unwrap();
        let ports = PlannerPorts {
            journal: Arc::<BusHandle>::clone(&handle),
            queues: Arc::<BusHandle>::clone(&handle),
            live: Arc::<BusHandle>::clone(&handle),
            working: Arc::<BusHandle>::clone(&handle),
            artifacts: Arc::<BusHandle>::clone(&handle),
            registry: handle,
            model: Arc::new(model),
            clock: Arc::new(self.bus.clock(0)),
            ids: Arc::new(SeededIds::new(31)),
        };
        let planner = Planner::new(ports, AgentBook::new([agent()]), Config::new(name("planner")));
        let shutdown = Shutdown::new();
        self.tasks.start("planner", async move { planner.run(shutdown).await.unwrap() });
    }

    /// How many records of a kind there are.
    pub(crate) fn count(&self, kind: &str) -> usize {
        let all = self.bus.history(0);
        let decoded = all.iter().filter_map(|stored| Envelope::decode(&stored.payload).ok());
        decoded.filter(|envelope| envelope.body.kind() == kind).count()
    }

    /// Stops the gateway; answers whether it ended by itself.
    pub(crate) async fn stop(&mut self) -> bool {
        self.shutdown.drain();
        self.tasks.finish(Duration::from_secs(5)).await
    }
}

pub(crate) async fn append(
    bus: &BusHandle,
    place: &ThreadRef,
    leaf: Leaf,
    record: Record,
    nonce: proto::ids::Nonce,
) -> Sequence {
    let payload = Bytes::from(Envelope::new(nonce.clone(), None, record).encode());
    let subject = Subject::new(place.clone(), leaf);
    let append = Append { subject, payload, nonce, fence: Fence::None, dedup: None };
    bus.append(append).await.unwrap().sequence
}

/// An id that no thread has.
pub(crate) fn unknown_thread() -> String {
    ThreadId::from_parts(7, 7).to_string()
}

fn tool(name: &str, effect: Effect) -> ToolContract {
    let asks = effect == Effect::Irreversible;
    ToolContract {
        name: ToolName::new(name).unwrap(),
        description: format!("Does {name}."),
        parameters: json!({"type": "object", "properties": {"n": {"type": "integer"}}}),
        effect,
        timeout_ms: 3000,
        retry: Retry::default(),
        deadlines: proto::tool::Deadlines::default(),
        approval: if asks { Approval::Always } else { Approval::Never },
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
        fallbacks: Vec::new(),
        price: None,
        verify: Verify::Off,
        prices: std::collections::BTreeMap::new(),
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
        memory: proto::agent::MemoryUse::default(),
        profile: None,
        approval_ms: 60_000,
        fingerprint: fingerprint("helper"),
    }
}

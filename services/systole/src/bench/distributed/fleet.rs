//! `systole bench-part fleet`: runs as a client of the deployment sees them, from the input to the
//! record that ends the run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use ports::BusError;
use ports::live::Live;
use proto::envelope::Envelope;
use proto::fact::{Outcome, RunFinished};
use proto::ids::{AgentName, ThreadRef, ToolCallId};
use proto::input::InputBody;
use proto::record::Record;
use proto::subject::Leaf;
use serde::{Deserialize, Serialize};
use service_runtime::tasks::TaskSet;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::time::Instant;

use super::super::counted::finished;
use super::super::statistics::{millis, quantile, rate};
use super::super::throughput::CALLS_PER_RUN;
use super::connection::connect;
use crate::arguments::BenchServers;
use crate::failure::Failure;
use crate::inputs;
use crate::launch::message;
use crate::wiring::servers::{Seen, Servers};

/// No run of a bench takes longer.
const LONGEST: Duration = Duration::from_mins(1);

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Fleet {
    /// Threads at work at once.
    pub(crate) threads: usize,
    pub(crate) runs: usize,
    pub(crate) calls_per_second: f64,
    /// From the input until the end of the run is stored.
    pub(crate) run_p50_ms: f64,
    pub(crate) run_p99_ms: f64,
    /// From a stored call to its stored observation; zero unless it was asked for.
    pub(crate) call_p50_ms: f64,
    pub(crate) call_p99_ms: f64,
}

/// Runs that somebody waits for.
type Waiting = Arc<Mutex<BTreeMap<ThreadRef, oneshot::Sender<RunFinished>>>>;

/// A client that begins runs and hears how they end.
pub(crate) struct Client {
    servers: Servers,
    partitions: u16,
    agent: AgentName,
    waiting: Waiting,
    calls: Arc<Mutex<Calls>>,
}

/// Times of calls, in microseconds.
#[derive(Default)]
struct Calls {
    open: BTreeMap<(ThreadRef, ToolCallId), i64>,
    spans_ms: Vec<f64>,
}

impl Client {
    /// Connects; `calls` says whether calls and observations are watched too.
    pub(crate) async fn connect(
        servers: &BenchServers,
        calls: bool,
        tasks: &mut TaskSet,
    ) -> Result<Self, Failure> {
        let agent = AgentName::new("bench").map_err(|error| Failure::other("a name", error))?;
        let client = Self {
            servers: connect(servers).await?,
            partitions: servers.partitions,
            agent,
            waiting: Waiting::default(),
            calls: Arc::default(),
        };
        let leaves: &[&str] =
            if calls { &["plan.fact", "plan.tool_call.*", "obs"] } else { &["plan.fact"] };
        let mut seen = client.servers.watch(leaves).await?;
        let (waiting, calls) = (Arc::clone(&client.waiting), Arc::clone(&client.calls));
        tasks.start("watch", async move {
            while let Some(Ok(seen)) = seen.next().await {
                note(&waiting, &calls, &seen).await;
            }
        });
        Ok(client)
    }

    /// Gives a fresh thread its message; answers with it.
    pub(crate) async fn begin(&self, place: &ThreadRef) -> Result<(), BusError> {
        let ports = self.servers.ports();
        let said = message("Note some numbers.".to_owned(), &self.agent, &[], None);
        let key = inputs::fresh_key(ports.ids.as_ref());
        let body = InputBody::Message(said);
        inputs::append(&ports.journal, ports.ids.as_ref(), place, key, body).await.map(drop)
    }

    /// Where live text is heard.
    pub(crate) fn live(&self) -> &dyn Live {
        self.servers.ports().live.as_ref()
    }

    /// A thread that nobody has used.
    pub(crate) fn fresh(&self) -> ThreadRef {
        let ports = self.servers.ports();
        inputs::place_in(ports.ids.thread_id(ports.clock.now()), self.partitions)
    }

    /// One run; anything but an answer fails.
    async fn run(&self) -> Result<Duration, Failure> {
        let (place, (tell, told)) = (self.fresh(), oneshot::channel());
        self.waiting.lock().await.insert(place.clone(), tell);
        let began = Instant::now();
        self.begin(&place).await?;
        match tokio::time::timeout(LONGEST, told).await {
            Ok(Ok(ended)) if ended.outcome == Outcome::Answered => Ok(began.elapsed()),
            Ok(other) => Err(Failure::other("the bench", format!("a run ended as {other:?}"))),
            Err(_) => Err(Failure::other("the bench", format!("{place} took over {LONGEST:?}"))),
        }
    }

    async fn lane(&self, end: Instant) -> Result<Vec<f64>, Failure> {
        let mut spans = Vec::new();
        while Instant::now() < end {
            spans.push(millis(self.run().await?));
        }
        Ok(spans)
    }
}

async fn note(waiting: &Waiting, calls: &Mutex<Calls>, seen: &Seen) {
    match &seen.subject.leaf {
        Leaf::Fact => {
            if let Some(ended) = finished(&seen.payload)
                && let Some(tell) = waiting.lock().await.remove(&seen.subject.thread)
            {
                // Whoever waited may have given up.
                let _heard = tell.send(ended).is_ok();
            }
        }
        Leaf::ToolCall(_) | Leaf::Observation => note_call(calls, seen).await,
        Leaf::In | Leaf::Start(_) | Leaf::Schedule | Leaf::Tick => {}
    }
}

async fn note_call(calls: &Mutex<Calls>, seen: &Seen) {
    let Ok(envelope) = Envelope::decode(&seen.payload) else { return };
    let mut calls = calls.lock().await;
    match envelope.body {
        Record::ToolCall(call) => {
            calls.open.insert((seen.subject.thread.clone(), call.tool_call_id), seen.micros);
        }
        Record::Observation(observation) => {
            let key = (seen.subject.thread.clone(), observation.tool_call_id);
            let Some(opened) = calls.open.remove(&key) else { return };
            let micros = u64::try_from(seen.micros.saturating_sub(opened)).unwrap_or(0);
            calls.spans_ms.push(millis(Duration::from_micros(micros)));
        }
        Record::Fact(_) | Record::Input(_) | Record::Start(_) | Record::Tick => {}
    }
}

/// Measures runs until `span` is over.
pub(crate) async fn measure(
    servers: &BenchServers,
    threads: usize,
    span: Duration,
    calls: bool,
) -> Result<Fleet, Failure> {
    let mut tasks = TaskSet::new();
    let client = Arc::new(Client::connect(servers, calls, &mut tasks).await?);
    client.run().await?;
    client.calls.lock().await.spans_ms.clear();
    let began = Instant::now();
    let (tell, mut told) = mpsc::channel(threads.max(1));
    for _ in 0..threads {
        let (client, tell) = (Arc::clone(&client), tell.clone());
        tasks.start("lane", async move {
            tell.send(client.lane(began + span).await).await.unwrap_or_default();
        });
    }
    drop(tell);
    let mut spans = Vec::new();
    while let Some(lane) = told.recv().await {
        spans.extend(lane?);
    }
    let took = began.elapsed();
    tasks.finish(Duration::ZERO).await;
    let calls = client.calls.lock().await.spans_ms.clone();
    Ok(Fleet {
        threads,
        runs: spans.len(),
        calls_per_second: rate(spans.len().saturating_mul(CALLS_PER_RUN), took),
        run_p50_ms: quantile(&spans, 0.5),
        run_p99_ms: quantile(&spans, 0.99),
        call_p50_ms: quantile(&calls, 0.5),
        call_p99_ms: quantile(&calls, 0.99),
    })
}

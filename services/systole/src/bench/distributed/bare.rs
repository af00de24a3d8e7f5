//! The floor: the same model requests over HTTP, the same calls and observations through JetStream
//! between two processes, and nothing else.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use service_runtime::tasks::TaskSet;
use tokio::sync::{Mutex, mpsc};
use tokio::time::Instant;

use super::super::floor::{RECORD, request};
use super::super::model::{ModelClient, until_alone};
use super::super::script::{CALLS, TURNS_WITH_CALLS};
use super::super::statistics::{millis, quantile, rate};
use super::super::throughput::CALLS_PER_RUN;
use crate::failure::Failure;
use crate::wiring::servers::Bare;

/// Answers that wait to be told.
const AT_ONCE: usize = 1024;

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Floor {
    pub(crate) threads: usize,
    pub(crate) runs: usize,
    pub(crate) calls_per_second: f64,
    pub(crate) run_p50_ms: f64,
    pub(crate) run_p99_ms: f64,
}

/// Runs that wait for answers.
type Waiting = Arc<Mutex<BTreeMap<u64, mpsc::Sender<()>>>>;

/// `systole bench-part bare-worker`: answers calls until standard input ends.
pub(crate) async fn worker(server: &str, partitions: u16) -> Result<(), Failure> {
    let bare = Bare::open(server, partitions).await?;
    tokio::select! {
        ended = bare.serve(Bytes::from(vec![b'.'; RECORD])) => Ok(ended?),
        _ = tokio::task::spawn_blocking(until_alone) => Ok(()),
    }
}

struct Floors {
    bare: Bare,
    model: ModelClient,
    waiting: Waiting,
    call: Bytes,
}

/// Measures it.
pub(crate) async fn measure(
    server: &str,
    partitions: u16,
    url: &str,
    threads: usize,
    span: Duration,
) -> Result<Floor, Failure> {
    let floors = Arc::new(Floors {
        bare: Bare::open(server, partitions).await?,
        model: ModelClient::new(url)?,
        waiting: Waiting::default(),
        call: Bytes::from(vec![b'.'; RECORD]),
    });
    let mut tasks = TaskSet::new();
    let (bare, (told, answered)) = (floors.bare.clone(), mpsc::channel(AT_ONCE));
    tasks.start("hear", async move {
        if let Err(error) = bare.hear(told).await {
            tracing::error!(%error, "no answer is heard any more");
        }
    });
    tasks.start("tell", tell(Arc::clone(&floors.waiting), answered));
    let began = Instant::now();
    let (tell, mut lanes) = mpsc::channel(threads.max(1));
    for lane in 0..threads {
        let (floors, tell) = (Arc::clone(&floors), tell.clone());
        tasks.start("lane", async move {
            let first = u64::try_from(lane).unwrap_or(0);
            tell.send(floors.lane(first, threads, began + span).await).await.unwrap_or_default();
        });
    }
    drop(tell);
    let mut spans = Vec::new();
    while let Some(lane) = lanes.recv().await {
        spans.extend(lane?);
    }
    let took = began.elapsed();
    tasks.finish(Duration::ZERO).await;
    Ok(Floor {
        threads,
        runs: spans.len(),
        calls_per_second: rate(spans.len().saturating_mul(CALLS_PER_RUN), took),
        run_p50_ms: quantile(&spans, 0.5),
        run_p99_ms: quantile(&spans, 0.99),
    })
}

async fn tell(waiting: Waiting, mut answered: mpsc::Receiver<u64>) {
    while let Some(run) = answered.recv().await {
        if let Some(told) = waiting.lock().await.get(&run) {
            // Never more answers than calls, and the channel has a place for each.
            told.try_send(()).unwrap_or_default();
        }
    }
}

impl Floors {
    async fn lane(&self, first: u64, step: usize, end: Instant) -> Result<Vec<f64>, Failure> {
        let mut spans = Vec::new();
        let mut run = first;
        while Instant::now() < end {
            let began = Instant::now();
            self.run(run).await?;
            spans.push(millis(began.elapsed()));
            run = run.saturating_add(u64::try_from(step).unwrap_or(1));
        }
        Ok(spans)
    }

    async fn run(&self, run: u64) -> Result<(), Failure> {
        let (told, mut answers) = mpsc::channel(CALLS);
        self.waiting.lock().await.insert(run, told);
        for turn in 0..TURNS_WITH_CALLS {
            self.model.ask(request(turn)).await?;
            let calls = (0..CALLS).map(|call| {
                let number = turn.saturating_mul(CALLS).saturating_add(call);
                self.bare.call(run, number, self.call.clone())
            });
            futures_util::future::try_join_all(calls).await?;
            for _ in 0..CALLS {
                answers.recv().await;
            }
        }
        self.model.ask(request(TURNS_WITH_CALLS)).await?;
        self.waiting.lock().await.remove(&run);
        Ok(())
    }
}

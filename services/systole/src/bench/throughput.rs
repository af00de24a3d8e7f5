//! Many threads at once: tool calls a second.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use service_runtime::tasks::TaskSet;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::files::NO_OP;
use super::processes::cpu_seconds;
use super::script::{CALLS, FAST, TURNS_WITH_CALLS};
use super::statistics::{millis, number, rate, ratio};
use super::world::{Shape, World};
use crate::commands::Context;
use crate::failure::Failure;

/// Threads at work at once.
pub(crate) const THREADS: usize = 64;
/// Tool calls of one run.
pub(crate) const CALLS_PER_RUN: usize = TURNS_WITH_CALLS * CALLS;

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Throughput {
    pub(crate) calls: usize,
    pub(crate) seconds: f64,
    pub(crate) calls_per_second: f64,
    /// Of the process with planner and worker.
    pub(crate) cpu_seconds: f64,
    /// Of the model's process meanwhile.
    #[serde(default)]
    pub(crate) model_cpu_seconds: f64,
    pub(crate) appends_per_call: f64,
    pub(crate) schedules_per_call: f64,
    pub(crate) reads_per_call: f64,
    pub(crate) records_read_per_call: f64,
    pub(crate) append_ms: f64,
    pub(crate) read_ms: f64,
}

/// Measures it; each thread is followed by a fresh one until the time is over.
pub(crate) async fn measure(
    context: &Context,
    url: &str,
    synced: bool,
    span: Duration,
) -> Result<Throughput, Failure> {
    let shape = Shape { url, model: FAST, early: "safe", tools: NO_OP, synced };
    let world = Arc::new(World::start(context, &shape).await?);
    world.run(&world.fresh()).await?;
    let (cpu, began) = (cpu_seconds(std::process::id()), Instant::now());
    let runs = lanes(&world, began + span).await?;
    let took = began.elapsed();
    let calls = runs.saturating_mul(CALLS_PER_RUN);
    let journal = &world.journal;
    let per_call = |count: usize| ratio(number(count), number(calls));
    let measured = Throughput {
        calls,
        seconds: took.as_secs_f64(),
        calls_per_second: rate(calls, took),
        cpu_seconds: cpu_seconds(std::process::id()) - cpu,
        model_cpu_seconds: 0.0,
        appends_per_call: per_call(journal.appends.count()),
        schedules_per_call: per_call(journal.schedules.count()),
        reads_per_call: per_call(journal.reads.count()),
        records_read_per_call: per_call(journal.records()),
        append_ms: millis(journal.appends.mean()),
        read_ms: millis(journal.reads.mean()),
    };
    if let Some(world) = Arc::into_inner(world) {
        world.stop().await?;
    }
    Ok(measured)
}

/// Runs until `end`; answers how many there were.
async fn lanes(world: &Arc<World>, end: Instant) -> Result<usize, Failure> {
    let (tell, mut told) = mpsc::channel(THREADS);
    let mut tasks = TaskSet::new();
    for _ in 0..THREADS {
        let (world, tell) = (Arc::clone(world), tell.clone());
        tasks.start("lane", async move {
            // Nobody hears it once another lane has failed.
            tell.send(lane(&world, end).await).await.unwrap_or_default();
        });
    }
    drop(tell);
    let mut runs: usize = 0;
    while let Some(lane) = told.recv().await {
        runs = runs.saturating_add(lane?);
    }
    tasks.finish(Duration::from_secs(1)).await;
    Ok(runs)
}

async fn lane(world: &World, end: Instant) -> Result<usize, Failure> {
    let mut runs: usize = 0;
    while Instant::now() < end {
        world.run(&world.fresh()).await?;
        runs = runs.saturating_add(1);
    }
    Ok(runs)
}

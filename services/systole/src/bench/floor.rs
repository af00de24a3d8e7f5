//! A bare program with the same work: the same requests to the same model, the same number of records
//! in one synced log with group commit, in the same order, and nothing else.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use service_runtime::tasks::TaskSet;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::log::Log;
use super::model::ModelClient;
use super::processes::cpu_seconds;
use super::script::{CALLS, FAST, TURNS_WITH_CALLS};
use super::statistics::rate;
use super::throughput::{CALLS_PER_RUN, THREADS};
use crate::commands::Context;
use crate::failure::Failure;

/// Bytes of a record, about as long as the product's are.
pub(crate) const RECORD: usize = 600;

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Floor {
    pub(crate) calls: usize,
    pub(crate) seconds: f64,
    pub(crate) calls_per_second: f64,
    pub(crate) cpu_seconds: f64,
    #[serde(default)]
    pub(crate) model_cpu_seconds: f64,
}

/// Measures it.
pub(crate) async fn measure(
    context: &Context,
    url: &str,
    span: Duration,
) -> Result<Floor, Failure> {
    let model = ModelClient::new(url)?;
    let failed = |error: std::io::Error| Failure::other("the bare log", error);
    let (log, writer) = Log::create(&context.common.store).map_err(failed)?;
    let (cpu, began) = (cpu_seconds(std::process::id()), Instant::now());
    let (tell, mut told) = mpsc::channel(THREADS);
    let mut tasks = TaskSet::new();
    for _ in 0..THREADS {
        let (model, log, tell) = (model.clone(), log.clone(), tell.clone());
        tasks.start("lane", async move {
            tell.send(lane(&model, &log, began + span).await).await.unwrap_or_default();
        });
    }
    drop((tell, log));
    let mut runs: usize = 0;
    while let Some(lane) = told.recv().await {
        runs = runs.saturating_add(lane?);
    }
    let took = began.elapsed();
    tasks.finish(Duration::from_secs(1)).await;
    let written = writer.await.map_err(|error| Failure::other("the bare log", error))?;
    written.map_err(failed)?;
    let calls = runs.saturating_mul(CALLS_PER_RUN);
    Ok(Floor {
        calls,
        seconds: took.as_secs_f64(),
        calls_per_second: rate(calls, took),
        cpu_seconds: cpu_seconds(std::process::id()) - cpu,
        model_cpu_seconds: 0.0,
    })
}

async fn lane(model: &ModelClient, log: &Log, end: Instant) -> Result<usize, Failure> {
    let mut runs: usize = 0;
    while Instant::now() < end {
        run(model, log).await?;
        runs = runs.saturating_add(1);
    }
    Ok(runs)
}

async fn run(model: &ModelClient, log: &Log) -> Result<(), Failure> {
    append(log).await?; // the input
    for turn in 0..TURNS_WITH_CALLS {
        ask(model, log, turn).await?;
        for _ in 0..CALLS {
            append(log).await?; // a call
        }
        append(log).await?; // the turn is completed
        let (first, second) = tokio::join!(append(log), append(log)); // the observations
        first.and(second)?;
    }
    ask(model, log, TURNS_WITH_CALLS).await?;
    append(log).await?; // the turn is completed
    append(log).await // the run is finished
}

async fn ask(model: &ModelClient, log: &Log, turn: usize) -> Result<(), Failure> {
    append(log).await?; // the turn is started
    model.ask(request(turn)).await?;
    Ok(())
}

async fn append(log: &Log) -> Result<(), Failure> {
    if log.append(vec![b'.'; RECORD]).await {
        return Ok(());
    }
    Err(Failure::other("the bare log", "it has failed"))
}

/// A request like the product's after this many turns.
pub(crate) fn request(turn: usize) -> Vec<u8> {
    let mut messages = vec![
        json!({"role": "system", "content": "You note numbers. ".repeat(60)}),
        json!({"role": "user", "content": "Note some numbers."}),
    ];
    let function = json!({"name": "note", "arguments": "{\"n\":1}"});
    let call = json!({"id": "abcdefghi", "type": "function", "function": function});
    let called = json!({"role": "assistant", "content": "", "tool_calls": [call, call]});
    let observed = json!({"role": "tool", "tool_call_id": "abcdefghi", "content": "noted"});
    for _ in 0..turn {
        messages.extend([called.clone(), observed.clone(), observed.clone()]);
    }
    let tool = json!({"name": "note", "description": "Note a number.",
        "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}});
    let tools: Value = json!([{"type": "function", "function": tool}]);
    json!({"model": FAST, "stream": true, "messages": messages, "tools": tools})
        .to_string()
        .into_bytes()
}

//! Runs that wait for a slow model: how soon each has asked it, and what holding them takes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use proto::envelope::Envelope;
use proto::fact::Fact;
use proto::ids::ThreadRef;
use proto::record::Record;
use proto::subject::Leaf;
use serde::{Deserialize, Serialize};
use serde_json::json;
use service_runtime::tasks::TaskSet;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::super::model::ModelClient;
use super::super::processes::resident_mb;
use super::super::statistics::{millis, quantile};
use super::connection::connect;
use super::fleet::Client;
use crate::arguments::BenchServers;
use crate::failure::Failure;
use crate::wiring::servers::Seen;

/// Inputs that are on their way at once.
const AT_ONCE: usize = 64;
/// How long all of them may take to begin.
const LONGEST: Duration = Duration::from_mins(2);
/// Runs whose start is not counted: the bar is for those that come on top of them.
const FIRST: usize = 1000;

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Waiting {
    pub(crate) threads: usize,
    /// From a stored input to the record that its turn has begun, of all but the first thousand.
    pub(crate) begun_p50_ms: f64,
    pub(crate) begun_p99_ms: f64,
    pub(crate) begun_worst_ms: f64,
    /// From the last input until the model has been asked by all.
    pub(crate) last_asked_ms: f64,
    pub(crate) seconds: f64,
}

/// What holding the same streams takes a program that does nothing else.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Streams {
    pub(crate) threads: usize,
    pub(crate) before_mb: f64,
    pub(crate) resident_mb: f64,
}

/// Begins that many runs at a steady rate and waits until the model has been asked by all.
pub(crate) async fn measure(
    servers: &BenchServers,
    url: &str,
    threads: usize,
    per_second: u32,
) -> Result<Waiting, Failure> {
    let model = ModelClient::new(url)?;
    let before = model.counts().await?.requests;
    let mut tasks = TaskSet::new();
    let client = Client::connect(servers, false, &mut tasks).await?;
    let (tell, mut spans) = mpsc::channel(AT_ONCE);
    let seen = connect(servers).await?.watch(&["in", "plan.fact"]).await?;
    tasks.start("starts", starts(seen, threads, tell));
    let began = Instant::now();
    begin(&client, threads, per_second).await?;
    let last = Instant::now();
    let wanted = u64::try_from(threads).unwrap_or(u64::MAX);
    model.arrived(before.saturating_add(wanted)).await?;
    let last_asked_ms = millis(last.elapsed());
    let seconds = began.elapsed().as_secs_f64();
    let told = tokio::time::timeout(LONGEST, spans.recv()).await;
    let spans = told.ok().flatten().unwrap_or_default();
    tasks.finish(Duration::ZERO).await;
    Ok(Waiting {
        threads,
        begun_p50_ms: quantile(&spans, 0.5),
        begun_p99_ms: quantile(&spans, 0.99),
        begun_worst_ms: quantile(&spans, 1.0),
        last_asked_ms,
        seconds,
    })
}

async fn begin(client: &Client, threads: usize, per_second: u32) -> Result<(), Failure> {
    let beat = Duration::from_secs(1).checked_div(per_second).unwrap_or_default();
    let mut beats = tokio::time::interval(beat.max(Duration::from_micros(1)));
    beats.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Burst);
    let paced = stream::unfold((beats, 0), |(mut beats, number)| async move {
        beats.tick().await;
        (number < threads).then_some((number, (beats, number.saturating_add(1))))
    });
    let begun = paced.map(|_| async { client.begin(&client.fresh()).await });
    let mut begun = std::pin::pin!(begun.buffer_unordered(AT_ONCE));
    while let Some(begun) = begun.next().await {
        begun?;
    }
    Ok(())
}

/// Tells how long each input waited for its turn, once as many have begun.
async fn starts(
    mut seen: stream::BoxStream<'static, Result<Seen, ports::BusError>>,
    threads: usize,
    tell: mpsc::Sender<Vec<f64>>,
) {
    let mut inputs = BTreeMap::<ThreadRef, (usize, i64)>::new();
    let (mut number, mut begun, mut spans) = (0_usize, 0_usize, Vec::new());
    while begun < threads
        && let Some(Ok(seen)) = seen.next().await
    {
        if seen.subject.leaf == Leaf::In {
            inputs.insert(seen.subject.thread, (number, seen.micros));
            number = number.saturating_add(1);
        } else if is_start(&seen)
            && let Some((number, at)) = inputs.remove(&seen.subject.thread)
        {
            begun = begun.saturating_add(1);
            let micros = u64::try_from(seen.micros.saturating_sub(at)).unwrap_or(0);
            if number >= FIRST.min(threads.saturating_sub(1)) {
                spans.push(millis(Duration::from_micros(micros)));
            }
        }
    }
    // Whoever asked may have given up.
    tell.send(spans).await.unwrap_or_default();
}

fn is_start(seen: &Seen) -> bool {
    let body = Envelope::decode(&seen.payload).map(|envelope| envelope.body);
    matches!(body, Ok(Record::Fact(Fact::TurnStarted(_))))
}

/// Opens as many silent replies of `model` and holds them.
pub(crate) async fn streams(url: &str, model: &str, threads: usize) -> Result<Streams, Failure> {
    let failed = |error: reqwest::Error| Failure::other("the bench's model", error);
    let http = Arc::new(reqwest::Client::builder().no_proxy().build().map_err(failed)?);
    let body = json!({ "model": model, "stream": true,
        "messages": [{ "role": "user", "content": "Note some numbers." }] });
    let before_mb = resident_mb(std::process::id());
    let (url, body) = (format!("{url}/chat/completions"), body.to_string());
    let opened = stream::iter(0..threads)
        .map(|_| http.post(&url).body(body.clone()).send())
        .buffer_unordered(AT_ONCE);
    let mut opened = std::pin::pin!(opened);
    let mut held = Vec::with_capacity(threads);
    while let Some(reply) = opened.next().await {
        held.push(reply.map_err(failed)?);
    }
    let resident_mb = resident_mb(std::process::id());
    Ok(Streams { threads: held.len(), before_mb, resident_mb })
}

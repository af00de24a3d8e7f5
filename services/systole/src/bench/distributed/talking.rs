//! `systole bench-part talking`: many replies that stream at once, over servers, with a reader for
//! each as a gateway has them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use ports::live::{Subscription, Topic};
use proto::ids::ThreadRef;
use proto::live::LiveWord;
use serde::{Deserialize, Serialize};
use service_runtime::tasks::TaskSet;
use tokio::time::Instant;

use super::super::model::{Counts, ModelClient};
use super::super::processes::{cpu_seconds, resident_mb};
use super::super::script::TALK;
use super::super::statistics::{ratio, wide};
use super::fleet::Client;
use super::report::Process;
use crate::arguments::BenchServers;
use crate::failure::Failure;

/// Threads that begin at once.
const AT_ONCE: usize = 32;
/// Between the last request and the measurement.
const SETTLE: Duration = Duration::from_secs(1);

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Talking {
    /// Replies at once.
    pub(crate) streams: usize,
    /// Chunks a second that each should have.
    pub(crate) pace: u32,
    pub(crate) seconds: f64,
    /// Chunks that the model sent a second, of all that it should have sent.
    pub(crate) chunks_per_second: f64,
    pub(crate) of_wanted: f64,
    /// Chunks a second that readers had the words of.
    pub(crate) heard_per_second: f64,
    /// Messages a second that readers got.
    pub(crate) publishes_per_second: f64,
    /// Of each process, during the measurement.
    pub(crate) processes: Vec<Process>,
}

/// What readers got.
#[derive(Debug, Default)]
struct Heard {
    messages: AtomicU64,
    bytes: AtomicU64,
}

/// One look at all counters.
struct Look {
    at: Instant,
    counts: Counts,
    messages: u64,
    bytes: u64,
    cpu: Vec<f64>,
}

/// Begins that many replies, waits until all stream, and measures for `span`.
pub(crate) async fn measure(
    servers: &BenchServers,
    url: &str,
    (threads, pace, span): (usize, u32, Duration),
    processes: &[(String, u32)],
) -> Result<Talking, Failure> {
    let model = ModelClient::new(url)?;
    let before = model.counts().await?.requests;
    let mut tasks = TaskSet::new();
    let client = Client::connect(servers, false, &mut tasks).await?;
    let heard = Arc::new(Heard::default());
    begin(&client, threads, (&heard, &mut tasks)).await?;
    model.arrived(before.saturating_add(u64::try_from(threads).unwrap_or(u64::MAX))).await?;
    tokio::time::sleep(SETTLE).await;
    let first = look(&model, &heard, processes).await?;
    tokio::time::sleep(span).await;
    let last = look(&model, &heard, processes).await?;
    tasks.finish(Duration::ZERO).await;
    Ok(between(&first, &last, (threads, pace), processes))
}

async fn begin(
    client: &Client,
    threads: usize,
    (heard, tasks): (&Arc<Heard>, &mut TaskSet),
) -> Result<(), Failure> {
    let mut places = Vec::with_capacity(threads);
    for _ in 0..threads {
        let place = client.fresh();
        let words = client.live().subscribe(&Topic::Text(place.clone())).await?;
        tasks.start("listen", listen(words, Arc::clone(heard)));
        places.push(place);
    }
    let begun = stream::iter(places)
        .map(|place: ThreadRef| async move { client.begin(&place).await })
        .buffer_unordered(AT_ONCE);
    let mut begun = std::pin::pin!(begun);
    while let Some(begun) = begun.next().await {
        begun?;
    }
    Ok(())
}

async fn listen(mut words: Box<dyn Subscription>, heard: Arc<Heard>) {
    while let Some((_, message)) = words.next().await {
        heard.messages.fetch_add(1, Ordering::Relaxed);
        if let Ok(LiveWord::Text(piece)) = serde_json::from_slice(&message) {
            heard.bytes.fetch_add(wide(piece.delta.len()), Ordering::Relaxed);
        }
    }
}

async fn look(
    model: &ModelClient,
    heard: &Heard,
    processes: &[(String, u32)],
) -> Result<Look, Failure> {
    Ok(Look {
        counts: model.counts().await?,
        at: Instant::now(),
        messages: heard.messages.load(Ordering::Relaxed),
        bytes: heard.bytes.load(Ordering::Relaxed),
        cpu: processes.iter().map(|(_, id)| cpu_seconds(*id)).collect(),
    })
}

fn between(
    first: &Look,
    last: &Look,
    (streams, pace): (usize, u32),
    processes: &[(String, u32)],
) -> Talking {
    let seconds = last.at.duration_since(first.at).as_secs_f64();
    let a_second = |before: u64, after: u64| ratio(count(after.saturating_sub(before)), seconds);
    let chunks_per_second = a_second(first.counts.chunks, last.counts.chunks);
    let wanted = super::super::statistics::number(streams) * f64::from(pace);
    let weighed = processes.iter().zip(&first.cpu).zip(&last.cpu);
    let weighed = weighed.map(|(((name, id), before), after)| Process {
        name: name.clone(),
        cpu_seconds: after - before,
        resident_mb: resident_mb(*id),
    });
    Talking {
        streams,
        pace,
        seconds,
        chunks_per_second,
        of_wanted: ratio(chunks_per_second, wanted),
        heard_per_second: a_second(first.bytes, last.bytes) / count(wide(TALK.len())),
        publishes_per_second: a_second(first.messages, last.messages),
        processes: weighed.collect(),
    }
}

/// A count as a number to compute with; what is beyond it takes more than a measurement.
fn count(number: u64) -> f64 {
    u32::try_from(number).map_or(f64::INFINITY, f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn rates_are_what_came_between_two_looks() {
        let at = Instant::now();
        let counts = |chunks| Counts { chunks, ..Counts::default() };
        let first = Look { at, counts: counts(100), messages: 10, bytes: 80, cpu: vec![1.0] };
        let later = at + Duration::from_secs(2);
        let last =
            Look { at: later, counts: counts(300), messages: 60, bytes: 1680, cpu: vec![1.5] };
        let told = between(&first, &last, (4, 50), &[("planner".to_owned(), 0)]);
        let numbers = [
            told.seconds,
            told.chunks_per_second,
            told.of_wanted,
            told.heard_per_second,
            told.publishes_per_second,
            told.processes[0].cpu_seconds,
        ];
        assert_eq!(
            numbers.map(|number| number.to_string()),
            ["2", "100", "0.5", "100", "25", "0.5"]
        );
    }
}

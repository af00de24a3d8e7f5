//! Four processes' worth of requests through one limit that lies in Redis:
//! `cargo run --example limits -- redis://127.0.0.1:6379 [REQUESTS_PER_MIN]`.
//!
//! The provider is a bucket of fifty tokens that is filled anew each second; requests come at one and
//! a half times that. After a warm-up of 15 s it counts for 60 s. Without a number the limit is learned.
#![expect(clippy::expect_used, clippy::print_stdout, reason = "a measurement for people")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use admission::{Admissions, Limits, Settings};
use ports::admission::{Admission as _, SharedCells, Went, Wish};
use ports::clock::{Clock, Ids};
use ports::model::Deaf;
use service_runtime::system::{SystemClock, SystemIds};
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep};
use working_redis::RedisMemory;

const RATE: i64 = 50;
const WARM: Duration = Duration::from_secs(15);
const LONG: Duration = Duration::from_secs(75);

#[derive(Default)]
struct Counts {
    bucket: AtomicI64,
    sent: AtomicU64,
    refused: AtomicU64,
    given_up: AtomicU64,
}

#[tokio::main]
async fn main() {
    let mut words = std::env::args().skip(1);
    let address = words.next().unwrap_or_else(|| "redis://127.0.0.1:6379".to_owned());
    let requests = words.next().and_then(|word| word.parse().ok());
    let settings = Settings {
        limits: Limits { requests, ..Limits::default() },
        longest_wait: Duration::from_secs(10),
        ..Settings::default()
    };
    let counts = Arc::new(Counts::default());
    let (clock, ids): (Arc<dyn Clock>, Arc<dyn Ids>) = (Arc::new(SystemClock), Arc::new(SystemIds));
    let mut tasks = JoinSet::new();
    let provider = Arc::clone(&counts);
    tasks.spawn(async move {
        let mut second = interval(Duration::from_secs(1));
        loop {
            second.tick().await;
            provider.bucket.store(RATE, Ordering::Relaxed);
        }
    });
    let mut processes = Vec::new();
    for _ in 0..4 {
        let at = working_redis::Settings::new(&*address);
        let cells: Arc<dyn SharedCells> =
            Arc::new(RedisMemory::connect(at).await.expect("a Redis at the address"));
        let asks = Arc::new(Admissions::new(cells, Arc::clone(&clock), Arc::clone(&ids), settings));
        processes.push(asks);
    }
    let began = Instant::now();
    for asks in processes {
        tasks.spawn(Arc::clone(&asks).settle());
        let (counts, ids) = (Arc::clone(&counts), Arc::clone(&ids));
        tasks.spawn(async move { load(asks, counts, ids, began).await });
    }
    sleep(LONG).await;
    let number = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let (sent, refused) = (number(&counts.sent), number(&counts.refused));
    let possible = 60 * RATE.unsigned_abs();
    let share = |part: u64, of: u64| format!("{}.{} %", part * 100 / of, part * 1000 / of % 10);
    println!(
        "limit {requests:?}: {sent} requests in 60 s, {refused} met a 429 ({}), {} of {possible} used ({}), {} waited 10 s in vain",
        share(refused, sent.max(1)),
        sent - refused,
        share(sent - refused, possible),
        number(&counts.given_up),
    );
    tasks.abort_all();
}

/// A quarter of one and a half times the rate, at random, whatever comes of it.
async fn load(asks: Arc<Admissions>, counts: Arc<Counts>, ids: Arc<dyn Ids>, began: Instant) {
    let mut under_way = JoinSet::new();
    let mean = Duration::from_secs(4 * 2) / (3 * u32::try_from(RATE).unwrap_or(1));
    loop {
        sleep(ids.jitter(mean * 2)).await;
        let (asks, counts) = (Arc::clone(&asks), Arc::clone(&counts));
        under_way.spawn(async move { one(&asks, &counts, began).await });
        while under_way.try_join_next().is_some() {}
    }
}

async fn one(asks: &Admissions, counts: &Counts, began: Instant) {
    let counted = |count: &AtomicU64| {
        if began.elapsed() > WARM {
            count.fetch_add(1, Ordering::Relaxed);
        }
    };
    let wish = Wish { endpoint: "e".into(), model: "m".into(), tenant: None, tokens: 100 };
    for _ in 0..3 {
        let Ok(mut place) = asks.admit(&wish, &Deaf).await else {
            return counted(&counts.given_up);
        };
        counted(&counts.sent);
        if counts.bucket.fetch_sub(1, Ordering::Relaxed) > 0 {
            sleep(Duration::from_millis(20)).await;
            return place.went(Went::Answered(Some(100)));
        }
        counted(&counts.refused);
        place.went(Went::Throttled(None));
    }
}

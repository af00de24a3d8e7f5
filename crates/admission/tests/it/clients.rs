//! Processes that ask for places, in virtual time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use admission::{Admissions, Limits, LocalCells, Settings};
use async_trait::async_trait;
use bytes::Bytes;
use ports::BusError;
use ports::admission::{Admission as _, Cell, SharedCells, Went, Wish};
use ports::clock::Clock;
use ports::model::{Deaf, Ear};
use proto::notice::Notice;
use proto::time::Timestamp;
use testkit::conformance::shared_cells;
use testkit::memory::SeededIds;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Tokio's time.
struct Paused(Instant);

impl Clock for Paused {
    fn now(&self) -> Timestamp {
        Timestamp(1_000_000).after(self.0.elapsed())
    }
}

fn clock() -> Arc<Paused> {
    Arc::new(Paused(Instant::now()))
}

/// Cells that may stop to answer.
struct Shaky {
    cells: LocalCells,
    out: AtomicBool,
    asked: AtomicUsize,
}

impl Shaky {
    fn new() -> Arc<Self> {
        let cells = LocalCells::new(clock());
        Arc::new(Self { cells, out: AtomicBool::new(false), asked: AtomicUsize::new(0) })
    }

    fn check(&self) -> Result<(), BusError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let out = self.out.load(Ordering::Relaxed);
        if out { Err(BusError::Unavailable("it is gone".to_owned())) } else { Ok(()) }
    }
}

#[async_trait]
impl SharedCells for Shaky {
    async fn cell(&self, name: &str) -> Result<Cell, BusError> {
        self.check()?;
        self.cells.cell(name).await
    }

    async fn swap_cell(
        &self,
        name: &str,
        before: Option<&Bytes>,
        after: Bytes,
        keep: Duration,
    ) -> Result<bool, BusError> {
        self.check()?;
        self.cells.swap_cell(name, before, after, keep).await
    }
}

fn process(cells: &Arc<Shaky>, settings: Settings, seed: u64) -> Arc<Admissions> {
    let shared: Arc<dyn SharedCells> = Arc::<Shaky>::clone(cells);
    Arc::new(Admissions::new(shared, clock(), Arc::new(SeededIds::new(seed)), settings))
}

fn settings(requests: Option<u32>, open: Option<usize>) -> Settings {
    let longest_wait = Duration::from_secs(10);
    Settings { limits: Limits { requests, tokens: None, open }, longest_wait, alone: 2 }
}

fn wish() -> Wish {
    Wish { endpoint: "http://e/v1".into(), model: "m".into(), tenant: None, tokens: 100 }
}

struct Wide(UnboundedSender<String>);

impl Ear for Wide {
    fn notice(&self, notice: Notice) {
        if let Notice::Waiting { because, .. } = notice {
            self.0.send(because).unwrap();
        }
    }

    fn asks(&self, _: &str) {}
}

#[tokio::test(start_paused = true)]
async fn local_cells_keep_the_contract_and_cells_that_forget_do_not() {
    let cells = Arc::new(LocalCells::new(clock()));
    let other: Arc<dyn SharedCells> = Arc::<LocalCells>::clone(&cells);
    assert_eq!(shared_cells::broken_rules(cells, other).await, Vec::<String>::new());
    let apart = || Arc::new(LocalCells::new(clock()));
    let broken = shared_cells::broken_rules(apart(), apart()).await;
    assert!(broken.contains(&"one of many swaps wins".to_owned()), "{broken:?}");
}

#[tokio::test(start_paused = true)]
async fn two_processes_share_a_limit_and_say_why_they_wait() {
    let cells = Shaky::new();
    // Ten a second, of which 9.7 are used.
    let one = process(&cells, settings(Some(600), None), 1);
    let two = process(&cells, settings(Some(600), None), 2);
    let (said, mut heard) = unbounded_channel();
    let began = Instant::now();
    let ear = Wide(said);
    for _ in 0..15 {
        let wish = wish();
        let (a, b) = tokio::join!(one.admit(&wish, &ear), two.admit(&wish, &Deaf));
        drop((a.unwrap(), b.unwrap()));
    }
    let took = began.elapsed().as_secs_f64();
    assert!((2.8..3.6).contains(&took), "30 requests took {took} s");
    let first = heard.try_recv().unwrap();
    assert_eq!(first, "waiting because the model takes no more requests a minute");
    assert_eq!(heard.try_recv().unwrap(), "", "it waits no more");
}

#[tokio::test(start_paused = true)]
async fn a_wait_is_bounded_and_a_place_that_is_dropped_falls_free() {
    let cells = Shaky::new();
    let one = process(&cells, settings(None, Some(1)), 1);
    let mut settling = JoinSet::new();
    settling.spawn(Arc::clone(&one).settle());
    let place = one.admit(&wish(), &Deaf).await.unwrap();
    let began = Instant::now();
    let refused = one.admit(&wish(), &Deaf).await.unwrap_err();
    assert_eq!(refused.because, "because as many requests are open as may be");
    assert!(began.elapsed() <= Duration::from_secs(10), "{:?}", began.elapsed());
    drop(place);
    let began = Instant::now();
    drop(one.admit(&wish(), &Deaf).await.unwrap());
    assert!(began.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn while_the_store_does_not_answer_a_part_of_the_limit_applies_here() {
    let cells = Shaky::new();
    let one = process(&cells, settings(Some(600), None), 1);
    cells.out.store(true, Ordering::Relaxed);
    let began = Instant::now();
    for _ in 0..15 {
        drop(one.admit(&wish(), &Deaf).await.unwrap());
    }
    // Half of ten a second.
    let took = began.elapsed().as_secs_f64();
    assert!((2.6..3.6).contains(&took), "15 requests took {took} s");
    assert!(cells.asked.load(Ordering::Relaxed) < 5, "it is left alone meanwhile");
    cells.out.store(false, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(6)).await;
    drop(one.admit(&wish(), &Deaf).await.unwrap());
    assert!(cells.cells.cell("http://e/v1 m").await.unwrap().value.is_some());
}

#[tokio::test(start_paused = true)]
async fn without_limits_nothing_is_asked_until_a_provider_refuses() {
    let cells = Shaky::new();
    let one = process(&cells, settings(None, None), 1);
    let mut settling = JoinSet::new();
    settling.spawn(Arc::clone(&one).settle());
    drop(one.admit(&wish(), &Deaf).await.unwrap());
    assert_eq!(cells.asked.load(Ordering::Relaxed), 0);
    let mut refused = one.admit(&wish(), &Deaf).await.unwrap();
    refused.went(Went::Throttled(Some(Duration::from_secs(3))));
    drop(refused);
    tokio::time::sleep(Duration::from_millis(10)).await;
    let began = Instant::now();
    drop(one.admit(&wish(), &Deaf).await.unwrap());
    assert!(began.elapsed() >= Duration::from_millis(2900), "{:?}", began.elapsed());
}

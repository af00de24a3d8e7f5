//! The suites that every adapter has to pass.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bus_sqlite::SqliteBus;
use ports::working_memory::WorkingMemory;
use proto::ids::InstanceId;
use testkit::conformance::{
    self, BusHarness, BusWorld, MemoryHarness, MemoryWorld, Peer, Report, Timing,
};
use tokio::sync::Mutex;

use crate::world::{PATIENCE, Place};

const SHORT: Duration = Duration::from_millis(300);

struct Files;

struct World {
    place: Place,
    bus: Mutex<Arc<SqliteBus>>,
}

impl World {
    fn new() -> Self {
        let place = Place::new();
        let bus = Mutex::new(Arc::new(open(&place)));
        Self { place, bus }
    }
}

fn open(place: &Place) -> SqliteBus {
    let mut options = place.options();
    options.ack_wait = Duration::from_millis(500);
    options.registration_lasts = SHORT;
    SqliteBus::open(place.path(), options).unwrap()
}

#[async_trait]
impl BusHarness for Files {
    async fn fresh(&self) -> Box<dyn BusWorld> {
        Box::new(World::new())
    }
}

#[async_trait]
impl BusWorld for World {
    async fn peer(&self, _process: &InstanceId) -> Peer {
        Peer::of(Arc::clone(&*self.bus.lock().await))
    }

    async fn reopen(&self) -> bool {
        let mut bus = self.bus.lock().await;
        bus.close().await.unwrap();
        *bus = Arc::new(open(&self.place));
        true
    }

    fn timing(&self) -> Timing {
        Timing { patience: PATIENCE, offer_ttl: Some(SHORT) }
    }
}

#[async_trait]
impl MemoryHarness for Files {
    async fn fresh(&self) -> Box<dyn MemoryWorld> {
        Box::new(World::new())
    }
}

#[async_trait]
impl MemoryWorld for World {
    async fn peer(&self) -> Arc<dyn WorkingMemory> {
        let bus: Arc<SqliteBus> = Arc::clone(&*self.bus.lock().await);
        bus
    }

    fn short(&self) -> Duration {
        SHORT
    }

    fn patience(&self) -> Duration {
        PATIENCE
    }
}

fn judge(report: &Report) {
    assert!(report.is_clean(), "{report}");
    assert_eq!(report.skipped, vec![], "{report}");
}

#[tokio::test]
async fn the_journal_keeps_its_contract() {
    judge(&conformance::journal::all(&Files).await);
}

#[tokio::test]
async fn schedules_keep_their_contract() {
    judge(&conformance::schedules::all(&Files).await);
}

#[tokio::test]
async fn queues_keep_their_contract() {
    judge(&conformance::queues::all(&Files).await);
}

#[tokio::test]
async fn live_topics_keep_their_contract() {
    judge(&conformance::live::all(&Files).await);
}

#[tokio::test]
async fn artifacts_keep_their_contract() {
    judge(&conformance::artifacts::all(&Files).await);
}

#[tokio::test]
async fn the_registry_keeps_its_contract() {
    judge(&conformance::registry::all(&Files).await);
}

#[tokio::test]
async fn freezes_keep_their_contract() {
    judge(&conformance::freezes::all(&Files).await);
}

#[tokio::test]
async fn the_feed_keeps_its_contract() {
    judge(&conformance::feed::all(&Files).await);
}

#[tokio::test]
async fn working_memory_keeps_its_contract() {
    judge(&conformance::working_memory::all(&Files).await);
}

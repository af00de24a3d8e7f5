//! Worlds over the fakes, with one flaw or none.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ports::journal::{Append, Fence, Journal};
use ports::working_memory::WorkingMemory;
use proto::envelope::Envelope;
use proto::ids::InstanceId;
use testkit::conformance::{self, BusWorld, MemoryWorld, Peer, Timing};
use testkit::memory::working::MemoryWorkingMemory;
use testkit::memory::{Config, MemoryBus};
use tokio::sync::Mutex;

use crate::flawed_bus::{Flawed, Notes};
use crate::flawed_memory::FlawedMemory;

pub(crate) struct BusHarness(pub(crate) &'static str);
pub(crate) struct MemoryHarness(pub(crate) &'static str);

pub(crate) struct FlawedBusWorld {
    flaw: &'static str,
    bus: Mutex<MemoryBus>,
    notes: Arc<Mutex<Notes>>,
}

pub(crate) struct FlawedMemoryWorld(Arc<FlawedMemory>);

fn empty_bus() -> MemoryBus {
    let config = Config {
        ack_wait: Duration::from_millis(500),
        offer_ttl: Duration::from_millis(500),
        ..Config::default()
    };
    MemoryBus::new(config)
}

pub(crate) fn bus(flaw: &'static str) -> FlawedBusWorld {
    FlawedBusWorld { flaw, bus: Mutex::new(empty_bus()), notes: Arc::default() }
}

pub(crate) fn memory(flaw: &'static str) -> FlawedMemoryWorld {
    FlawedMemoryWorld(Arc::new(FlawedMemory::new(flaw, MemoryWorkingMemory::new())))
}

#[async_trait]
impl conformance::BusHarness for BusHarness {
    async fn fresh(&self) -> Box<dyn BusWorld> {
        Box::new(bus(self.0))
    }
}

#[async_trait]
impl conformance::MemoryHarness for MemoryHarness {
    async fn fresh(&self) -> Box<dyn MemoryWorld> {
        Box::new(memory(self.0))
    }
}

/// A bus with the same records, and nothing else of the old one.
async fn records_only(old: &MemoryBus) -> MemoryBus {
    let new = empty_bus();
    let handle = new.handle(&InstanceId::new("copy").unwrap());
    for stored in old.history(0) {
        let append = Append {
            subject: stored.subject.clone(),
            payload: stored.payload.clone(),
            nonce: Envelope::nonce_of(&stored.payload).unwrap(),
            fence: Fence::None,
            dedup: None,
        };
        handle.append(append).await.unwrap();
    }
    new
}

#[async_trait]
impl BusWorld for FlawedBusWorld {
    async fn peer(&self, process: &InstanceId) -> Peer {
        let inner = self.bus.lock().await.handle(process);
        Peer::of(Arc::new(Flawed { flaw: self.flaw, inner, notes: Arc::clone(&self.notes) }))
    }

    async fn reopen(&self) -> bool {
        let mut bus = self.bus.lock().await;
        match self.flaw {
            "records_survive_a_reopen"
            | "payloads_survive_a_reopen"
            | "freezes_survive_a_reopen"
            | "held_records_come_again_after_a_reopen" => *bus = empty_bus(),
            "ids_and_fences_survive_a_reopen" | "a_schedule_survives_a_reopen" => {
                *bus = records_only(&bus).await;
            }
            _ => {}
        }
        true
    }

    fn timing(&self) -> Timing {
        let offer_ttl = Some(Duration::from_millis(500));
        Timing { patience: Duration::from_secs(1), offer_ttl }
    }
}

#[async_trait]
impl MemoryWorld for FlawedMemoryWorld {
    async fn peer(&self) -> Arc<dyn WorkingMemory> {
        Arc::<FlawedMemory>::clone(&self.0)
    }

    fn short(&self) -> Duration {
        Duration::from_millis(100)
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(1)
    }
}

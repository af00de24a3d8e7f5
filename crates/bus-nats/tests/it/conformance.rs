//! The suites every bus has to pass.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bus_nats::NatsBus;
use proto::ids::InstanceId;
use testkit::conformance::{self, BusHarness, BusWorld, Peer, Timing};
use testkit::servers::require_server;
use tokio::sync::Mutex;

use crate::server::{Server, oldest_program, program};

struct Harness {
    program: PathBuf,
}

struct World {
    server: Server,
    peers: Mutex<BTreeMap<InstanceId, Arc<NatsBus>>>,
}

#[async_trait]
impl BusHarness for Harness {
    async fn fresh(&self) -> Box<dyn BusWorld> {
        Box::new(World { server: Server::start(&self.program).await, peers: Mutex::default() })
    }
}

#[async_trait]
impl BusWorld for World {
    async fn peer(&self, process: &InstanceId) -> Peer {
        let mut peers = self.peers.lock().await;
        if !peers.contains_key(process) {
            peers.insert(process.clone(), Arc::new(self.server.bus().await));
        }
        Peer::of(Arc::clone(&peers[process]))
    }

    async fn reopen(&self) -> bool {
        self.peers.lock().await.clear();
        true
    }

    fn timing(&self) -> Timing {
        Timing { patience: Duration::from_secs(15), offer_ttl: Some(Duration::from_millis(1500)) }
    }
}

macro_rules! suites {
    ($server:ident, $program:expr; $($name:ident),+) => {mod $server {
        use super::*;
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let Some(program) = require_server("nats-server", $program) else { return };
                let report = conformance::$name::all(&Harness { program }).await;
                assert!(report.is_clean(), "{report}");
            }
        )+
    }};
}

suites!(newest, program(); journal, schedules, queues, live, artifacts, registry, freezes, feed);
suites!(oldest, oldest_program(); journal, schedules, queues, live, artifacts, registry, freezes, feed);

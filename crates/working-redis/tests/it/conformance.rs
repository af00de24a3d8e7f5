//! The suite that every working memory has to pass, on each product and version.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use ports::working_memory::WorkingMemory;
use testkit::conformance::{MemoryHarness, MemoryWorld, shared_cells, working_memory};
use testkit::servers::require_server;
use working_redis::{RedisMemory, Settings};

use crate::server::{PATIENCE, Server, oldest_redis, redis, valkey};

/// One server; each world has a prefix of its own.
struct Harness {
    server: Server,
    worlds: AtomicUsize,
}

struct World(Settings);

#[async_trait]
impl MemoryHarness for Harness {
    async fn fresh(&self) -> Box<dyn MemoryWorld> {
        let number = self.worlds.fetch_add(1, Ordering::Relaxed);
        let patient = Duration::from_secs(5);
        let prefix = format!("world-{number}");
        Box::new(World(Settings { prefix, request: patient, ..self.server.settings() }))
    }
}

#[async_trait]
impl MemoryWorld for World {
    async fn peer(&self) -> Arc<dyn WorkingMemory> {
        Arc::new(RedisMemory::connect(self.0.clone()).await.unwrap())
    }

    fn short(&self) -> Duration {
        Duration::from_millis(300)
    }

    fn patience(&self) -> Duration {
        PATIENCE
    }
}

async fn judge(server: Server) {
    let cells = || RedisMemory::connect(server.settings());
    let (one, other) = (Arc::new(cells().await.unwrap()), Arc::new(cells().await.unwrap()));
    assert_eq!(shared_cells::broken_rules(one, other).await, Vec::<String>::new());
    let report = working_memory::all(&Harness { server, worlds: AtomicUsize::new(0) }).await;
    assert!(report.is_clean(), "{report}");
    assert_eq!(report.skipped, vec![], "{report}");
}

async fn judge_program(name: &str, program: Option<PathBuf>) {
    let Some(program) = require_server(name, program) else { return };
    judge(Server::start(&program).await).await;
}

#[tokio::test]
async fn redis_keeps_the_contract() {
    judge_program("redis-server", redis()).await;
}

#[tokio::test]
async fn the_oldest_redis_keeps_the_contract() {
    judge_program("redis-server 6.2", oldest_redis()).await;
}

#[tokio::test]
async fn valkey_keeps_the_contract() {
    judge_program("valkey-server", valkey()).await;
}

/// A node of a cluster refuses a request whose keys lie in two slots, even if it has them all.
#[tokio::test]
async fn no_request_touches_two_slots_of_a_cluster() {
    let Some(program) = require_server("redis-server", redis()) else { return };
    let server = Server::start_with(&program, &["--cluster-enabled", "yes"]).await;
    let slots: Vec<_> = (0..16_384).map(|slot| slot.to_string()).collect();
    let words = ["CLUSTER", "ADDSLOTS"].into_iter().chain(slots.iter().map(|s| &**s));
    assert_eq!(server.command(&words.collect::<Vec<_>>()).await, "+OK");
    while server.command(&["SET", "up", "1"]).await != "+OK" {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(server.command(&["MSET", "a", "1", "b", "2"]).await.contains("CROSSSLOT"));
    judge(server).await;
}

//! Long-term memory over Qdrant: a real server where `QDRANT_URL` names one, else the endpoint of
//! `testkit` over Qdrant's own engine. The tests say which one it was.
#![cfg(test)]

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ports::BusError;
use ports::recall::{Access, Query, Recall};
use proto::ids::TenantId;
use proto::time::Timestamp;
use recall_qdrant::{QdrantRecall, Settings};
use tempfile::TempDir;
use testkit::conformance::{self, RecallHarness, RecallWorld};
use testkit::qdrant::Qdrant;
use testkit::servers::require_server;

static WORLDS: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);

struct Server {
    qdrant: Qdrant,
    _folder: TempDir,
}

fn server() -> Option<Server> {
    let folder = tempfile::tempdir().unwrap();
    let qdrant = require_server(
        "Qdrant (nor its endpoint: `cargo xtask setup`)",
        Qdrant::start(folder.path()),
    )?;
    eprintln!(
        "{}: {}",
        if qdrant.is_real { "a real Qdrant" } else { "the test endpoint" },
        qdrant.url
    );
    Some(Server { qdrant, _folder: folder })
}

/// Each world is a collection of its own.
struct World(Settings);

fn settings(server: &Server) -> Settings {
    let number = WORLDS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let collection = format!("test_{}_{number}", std::process::id());
    let request = Duration::from_secs(20);
    Settings { collection, request, ..Settings::new(&*server.qdrant.url) }
}

#[async_trait]
impl RecallHarness for Server {
    async fn fresh(&self) -> Box<dyn RecallWorld> {
        Box::new(World(settings(self)))
    }
}

#[async_trait]
impl RecallWorld for World {
    async fn peer(&self) -> Arc<dyn Recall> {
        Arc::new(QdrantRecall::new(self.0.clone()).unwrap())
    }

    async fn reopen(&self) -> bool {
        true
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn long_term_memory_keeps_its_contract() {
    let Some(server) = server() else { return };
    let report = conformance::recall::all(&server).await;
    assert!(report.is_clean(), "{report}");
    assert_eq!(report.skipped, vec![], "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_gone_is_told_and_answers_again_when_it_is_back() {
    let Some(mut server) = server() else { return };
    if server.qdrant.is_real {
        return;
    }
    let settings = Settings { request: Duration::from_millis(500), ..settings(&server) };
    let memory = QdrantRecall::new(settings).unwrap();
    let access = Access::of_caller(TenantId::new("acme").unwrap());
    let query = Query::words("canary", 5, Timestamp(1));
    assert_eq!(memory.query(&access, &query).await, Ok(vec![]));
    server.qdrant.kill();
    let answer = memory.query(&access, &query).await;
    assert!(matches!(answer, Err(BusError::Unavailable(_))), "{answer:?}");
}

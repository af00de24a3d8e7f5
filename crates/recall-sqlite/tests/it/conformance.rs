//! The suite that every long-term memory has to pass.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use ports::recall::Recall;
use recall_sqlite::{Options, SqliteRecall};
use tempfile::TempDir;
use testkit::conformance::{self, RecallHarness, RecallWorld};

struct Files;

struct World {
    _folder: TempDir,
    path: PathBuf,
}

#[async_trait]
impl RecallHarness for Files {
    async fn fresh(&self) -> Box<dyn RecallWorld> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memory.db");
        Box::new(World { _folder: folder, path })
    }
}

#[async_trait]
impl RecallWorld for World {
    /// Each has a connection of its own, as another process has.
    async fn peer(&self) -> Arc<dyn Recall> {
        Arc::new(SqliteRecall::open(&self.path, Options::default()).unwrap())
    }

    async fn reopen(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn long_term_memory_keeps_its_contract() {
    let report = conformance::recall::all(&Files).await;
    assert!(report.is_clean(), "{report}");
    assert_eq!(report.skipped, vec![], "{report}");
}

/// A room of nothing: each question loads anew, and blocks are dropped all the time.
#[tokio::test]
async fn a_memory_without_room_still_opens_and_answers() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { memory: 0, ..Options::default() };
    let memory = SqliteRecall::open(&folder.path().join("memory.db"), options).unwrap();
    let access = ports::recall::Access::of_caller("acme".parse().unwrap());
    let query = ports::recall::Query::words("canary", 5, proto::time::Timestamp(1));
    assert_eq!(memory.query(&access, &query).await, Ok(vec![]));
}

//! The `expand` builtin over a store.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use definitions::run::{Builtin, BuiltinRun, Run};
use ports::BusError;
use ports::artifacts::Artifacts;
use proto::hash::artifact_id;
use proto::ids::{ArtifactId, ThreadRef};
use proto::observation::ArtifactRef;
use serde_json::{Value, json};
use worker::executor::{Ended, ExecutorSettings, from_run};

use crate::support::{done, failed, job, not_started, run, settings};

const STORED: &str = "one\ntwo error\nthree\n";

/// One artifact of the thread that all calls of these tests belong to.
struct OneArtifact;

#[async_trait]
impl Artifacts for OneArtifact {
    async fn put(&self, _: &ThreadRef, bytes: Bytes) -> Result<ArtifactRef, BusError> {
        Ok(ArtifactRef { id: artifact_id(&bytes), bytes: 0 })
    }

    async fn get(&self, thread: &ThreadRef, id: &ArtifactId) -> Result<Option<Bytes>, BusError> {
        let is_it = *thread == job(json!({})).thread && *id == artifact_id(STORED.as_bytes());
        Ok(is_it.then(|| Bytes::from_static(STORED.as_bytes())))
    }

    async fn remove(&self, _: &ThreadRef, _: &ArtifactId) -> Result<(), BusError> {
        Ok(())
    }

    async fn erase(&self, _: &ThreadRef) -> Result<(), BusError> {
        Ok(())
    }
}

async fn expand(artifacts: Option<Arc<dyn Artifacts>>, arguments: Value) -> Ended {
    let settings = ExecutorSettings { artifacts, ..settings(Path::new("/")) };
    let builtin = BuiltinRun { builtin: Builtin::Expand, root: None, private: false };
    run(&from_run(&Run::Builtin(builtin), &settings), arguments).await
}

async fn stored(arguments: Value) -> Ended {
    expand(Some(Arc::new(OneArtifact)), arguments).await
}

#[tokio::test]
async fn a_stored_result_is_paged_and_searched() {
    let id = artifact_id(STORED.as_bytes()).to_string();
    let all = format!("{STORED}\n[bytes 0 to 20 of 20: this is the end]\n");
    assert_eq!(stored(json!({"artifact": id})).await, done(all));
    let page = "two\n[bytes 4 to 7 of 20: continue with from 7]\n";
    assert_eq!(stored(json!({"artifact": id, "from": 4, "bytes": 3})).await, done(page));
    assert_eq!(stored(json!({"artifact": id, "search": "ERROR"})).await, done("4: two error\n"));
    let why = "the result ends at byte 20";
    assert_eq!(stored(json!({"artifact": id, "from": 21})).await, failed(why));
}

#[tokio::test]
async fn what_is_not_stored_is_a_failure_and_no_error() {
    let why = "artifact_missing: The full result is no longer stored. Check the id, or make the \
               call again that had the result.";
    assert_eq!(stored(json!({"artifact": "0".repeat(64)})).await, failed(why));
    let why = "argument `artifact` is no artifact id: copy the 64 digits from the earlier result";
    assert_eq!(stored(json!({"artifact": "../x"})).await, not_started(why));
    let why = "this worker has no store for full results";
    assert_eq!(expand(None, json!({"artifact": "0".repeat(64)})).await, not_started(why));
}

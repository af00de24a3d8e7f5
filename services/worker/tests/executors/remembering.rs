//! Long-term memory as tools.

use std::path::Path;
use std::sync::Arc;

use definitions::run::{Builtin, BuiltinRun, Run};
use ports::embedder::WordsOnly;
use ports::recall::{Access, Recall};
use serde_json::{Value, json};
use testkit::recall::RecallMemory;
use worker::executor::memory::ToolMemory;
use worker::executor::{Ended, ExecutorSettings, from_run};

use crate::support::{job, run, settings};

async fn call(store: &Arc<RecallMemory>, builtin: Builtin, arguments: Value) -> Ended {
    let recall: Arc<dyn Recall> = Arc::<RecallMemory>::clone(store);
    let memory = Some(ToolMemory { recall, embedder: Arc::new(WordsOnly) });
    let settings = ExecutorSettings { memory, ..settings(Path::new("/")) };
    let tool =
        from_run(&Run::Builtin(BuiltinRun { builtin, root: None, private: false }), &settings);
    run(&tool, arguments).await
}

fn said(ended: &Ended) -> String {
    let Ended::Done(output) = ended else { panic!("{ended:?}") };
    String::from_utf8_lossy(&output.bytes).into_owned()
}

#[tokio::test]
async fn what_a_call_remembers_is_kept_once_found_and_forgotten() {
    let store = Arc::new(RecallMemory::new());
    let told = json!({"text": "The staging cluster is kestrel. password: hunter2222"});
    let first = said(&call(&store, Builtin::Remember, told.clone()).await);
    // A second attempt of the same call.
    assert_eq!(said(&call(&store, Builtin::Remember, told).await), first);
    let access = Access::of_thread(&job(json!({})).thread);
    assert_eq!(store.size(&access).await.unwrap().fragments, 1);
    let found = said(&call(&store, Builtin::Recall, json!({"question": "staging cluster"})).await);
    assert!(found.contains("kestrel") && !found.contains("hunter2222"), "{found}");
    let id = first.strip_prefix("remembered as ").unwrap();
    assert!(found.starts_with(&format!("[{id}] ")), "{found}");
    let gone = said(&call(&store, Builtin::Forget, json!({"id": id})).await);
    assert_eq!(gone, format!("forgotten: {id}"));
    let found = said(&call(&store, Builtin::Recall, json!({"question": "staging cluster"})).await);
    assert_eq!(found, "nothing is remembered that fits");
}

#[tokio::test]
async fn what_is_wrong_is_told_with_a_fix() {
    let store = Arc::new(RecallMemory::new());
    let ended = call(&store, Builtin::Forget, json!({"id": "everything"})).await;
    assert!(
        matches!(&ended, Ended::Failed { why, retryable: false, .. } if why.contains("THREAD/TURN.PART")),
        "{ended:?}"
    );
    store.set_down(true);
    let ended = call(&store, Builtin::Recall, json!({"question": "x"})).await;
    assert!(matches!(&ended, Ended::Failed { retryable: true, .. }), "{ended:?}");
}

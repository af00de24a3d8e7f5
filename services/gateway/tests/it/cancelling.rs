//! Stopping a run, with receipts.

use std::time::Duration;

use proto::model::Finish;
use serde_json::{Map, json};
use testkit::model::{ScriptedModel, Step, call, end};

use crate::client::ask;
use crate::world::World;

#[tokio::test]
async fn a_cancel_ends_the_run_and_tells_how_far_each_call_had_come() {
    let mut world = World::new().await;
    let reply = || vec![call(0, "look", Map::new()), end(Finish::ToolCalls)];
    world.planner(ScriptedModel::new(move |_| Ok(reply()))).await;
    let thread = world.begin("look").await;
    // Nobody serves the tool: the call waits.
    world.events(&thread).await.until("tool_call").await;
    let path = format!("/v1/threads/{thread}/cancel");
    let key = [("idempotency-key", "stop")];
    let receipt = world.post_with(&path, &key, &json!({ "reason": "enough" })).await;
    assert_eq!(receipt.status, 200, "{receipt:?}");
    assert_eq!(receipt.body["state"], "ended");
    assert_eq!((&receipt.body["cancelled"], &receipt.body["run"]), (&json!(true), &json!(1)));
    assert_eq!(receipt.body["finished"]["reason"], "cancelled");
    let calls = receipt.body["calls"].as_array().unwrap();
    assert_eq!((calls.len(), &calls[0]["tool"]), (1, &json!("look")));
    assert_eq!(calls[0]["code"], "cancelled");
    assert!(calls[0]["receipt"].is_string(), "{receipt:?}");
    // Asked again it is the same cancel with the same receipt.
    let again = world.post_with(&path, &key, &json!({ "reason": "enough" })).await;
    assert_eq!((again.status, &again.body), (200, &receipt.body));
    assert_eq!(world.count("input"), 2);
}

#[tokio::test]
async fn a_run_that_does_not_end_in_time_is_reported_as_stopping() {
    let world = World::new().await;
    let thread = world.begin("hello").await;
    let path = format!("/v1/threads/{thread}/cancel");
    let receipt = world.post(&path, &json!({ "wait_ms": 100 })).await;
    assert_eq!((receipt.status, &receipt.body["state"]), (202, &json!("stopping")));
    assert_eq!(receipt.body["finished"], json!(null));
}

#[tokio::test]
async fn there_is_nothing_to_cancel_in_a_thread_at_rest() {
    let mut world = World::new().await;
    let reply = || vec![Step::Wait(Duration::from_millis(1)), end(Finish::Stop)];
    world.planner(ScriptedModel::new(move |_| Ok(reply()))).await;
    let thread = world.begin("hello").await;
    world.events(&thread).await.until("run_finished").await;
    let line = format!("POST /v1/threads/{thread}/cancel");
    let receipt = ask(world.address, &line, &[], None).await;
    assert_eq!(receipt.status, 200, "{receipt:?}");
    assert_eq!(receipt.body["state"], "at_rest");
    assert_eq!(receipt.body["cancelled"], false);
    assert_eq!(world.count("input"), 1);
}

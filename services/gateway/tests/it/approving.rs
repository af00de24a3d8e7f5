//! A person's word on a call.

use proto::model::Finish;
use serde_json::{Map, Value, json};
use testkit::model::{ScriptedModel, call, end, text};

use crate::world::World;

/// A run that waits for a word; answers with its thread, the call, and what was shown.
async fn asked(world: &mut World) -> (String, String, Value) {
    let script = |request: &proto::model::ModelRequest| {
        let is_first = !format!("{request:?}").contains("denied");
        Ok(if is_first {
            vec![call(0, "pay", Map::new()), end(Finish::ToolCalls)]
        } else {
            vec![text("then not"), end(Finish::Stop)]
        })
    };
    world.planner(ScriptedModel::new(script)).await;
    let thread = world.begin("pay").await;
    let told = world.events(&thread).await.until("approval_asked").await;
    let asked = told.last().unwrap().data.clone();
    (thread, asked["tool_call_id"].as_str().unwrap().to_owned(), asked["arguments_hash"].clone())
}

#[tokio::test]
async fn an_approved_call_is_dispatched() {
    let mut world = World::new().await;
    let (thread, id, hash) = asked(&mut world).await;
    let shown = world.get(&format!("/v1/threads/{thread}")).await;
    assert_eq!(shown.body["open_calls"][0]["approval"]["arguments_hash"], hash);
    let path = format!("/v1/threads/{thread}/approvals/{id}");
    let agreed = json!({ "approve": true, "arguments_hash": hash, "by": "ann" });
    let first = world.post(&path, &agreed).await;
    assert_eq!(first.status, 200, "{first:?}");
    world.events(&thread).await.until("tool_call").await;
    // The same word again is the same answer; another one comes too late.
    let again = world.post(&path, &agreed).await;
    assert_eq!((again.status, &again.body), (200, &first.body));
    let other = json!({ "approve": false, "arguments_hash": hash });
    assert_eq!(world.post(&path, &other).await.refusal(), (409, "not_waiting"));
    assert_eq!(world.count("input"), 2);
}

#[tokio::test]
async fn a_word_on_something_else_decides_nothing() {
    let mut world = World::new().await;
    let (thread, id, hash) = asked(&mut world).await;
    let path = format!("/v1/threads/{thread}/approvals/{id}");
    let other = json!({ "approve": true, "arguments_hash": "0".repeat(64) });
    assert_eq!(world.post(&path, &other).await.refusal(), (409, "not_waiting"));
    let unknown = format!("/v1/threads/{thread}/approvals/aaaaaaaa1");
    let agreed = json!({ "approve": true, "arguments_hash": hash });
    assert_eq!(world.post(&unknown, &agreed).await.refusal(), (404, "not_found"));
    let bad = format!("/v1/threads/{thread}/approvals/NO");
    assert_eq!(world.post(&bad, &agreed).await.refusal(), (400, "invalid_input"));
    assert_eq!(world.count("input"), 1);
    let denied = world.post(&path, &json!({ "approve": false, "arguments_hash": hash })).await;
    assert_eq!(denied.status, 200, "{denied:?}");
    let told = world.events(&thread).await.until("observation").await;
    assert_eq!(told.last().unwrap().data["code"], "denied");
    assert_eq!(world.post(&path, &agreed).await.refusal(), (409, "not_waiting"));
}

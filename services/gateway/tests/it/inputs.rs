//! What clients say, and say again.

use std::sync::Arc;
use std::time::Duration;

use proto::ids::InstanceId;
use serde_json::json;
use testkit::memory::faults::{Fault, Faults, Op, OpKind};
use testkit::memory::{Config, MemoryBus};

use crate::client::ask;
use crate::world::{World, settings, unknown_thread};

#[tokio::test]
async fn a_thread_begins_with_an_input_and_stands_in_the_journal() {
    let world = World::new().await;
    let body = json!({ "agent": "helper", "input": { "text": "hello", "complexity": 2 } });
    let answer = world.post("/v1/threads", &body).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    let thread = answer.body["thread"].as_str().unwrap();
    assert_eq!(answer.header("location"), Some(&*format!("/v1/threads/{thread}")));
    assert_eq!(answer.body["input"]["sequence"], 1);
    let shown = world.get(&format!("/v1/threads/{thread}")).await;
    assert_eq!(shown.status, 200);
    assert_eq!(shown.body["agent"], "helper");
    assert_eq!(shown.body["active"], true);
    assert_eq!(shown.body["state"], "initializing");
    assert_eq!(shown.body["waiting_inputs"], 1);
    assert_eq!(shown.body["id"], answer.body["input"]["id"]);
}

#[tokio::test]
async fn the_same_key_gets_the_same_answer_and_is_taken_once() {
    let world = World::new().await;
    let key = [("idempotency-key", "k1")];
    let begin = json!({ "agent": "helper", "input": { "text": "hello" } });
    let first = world.post_with("/v1/threads", &key, &begin).await;
    let again = world.post_with("/v1/threads", &key, &begin).await;
    assert_eq!((again.status, &again.body), (first.status, &first.body));
    let path = format!("/v1/threads/{}/inputs", first.body["thread"].as_str().unwrap());
    let said = json!({ "text": "and?", "mode": "steer" });
    let key = [("idempotency-key", "k2")];
    let first = world.post_with(&path, &key, &said).await;
    assert_eq!(first.status, 202, "{first:?}");
    let in_body = json!({ "text": "and?", "mode": "steer", "key": "k2" });
    let again = world.post(&path, &in_body).await;
    assert_eq!((again.status, &again.body), (202, &first.body));
    assert_eq!(world.count("input"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_key_is_known_long_after_the_bus_forgot_it() {
    let world = World::new().await;
    let thread = world.begin("hello").await;
    let path = format!("/v1/threads/{thread}/inputs");
    let said = json!({ "text": "and?", "key": "k2" });
    let first = world.post(&path, &said).await;
    tokio::time::advance(Duration::from_hours(24)).await;
    let again = world.post(&path, &said).await;
    assert_eq!((again.status, &again.body), (202, &first.body));
    assert_eq!(world.count("input"), 2);
}

#[tokio::test]
async fn many_at_once_with_one_key_are_one_input() {
    let world = World::new().await;
    let thread = world.begin("hello").await;
    let (address, line) = (world.address, format!("POST /v1/threads/{thread}/inputs"));
    let mut asking = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let line = line.clone();
        let said = json!({ "text": "and?", "key": "k2" });
        asking.spawn(async move { ask(address, &line, &[], Some(&said)).await });
    }
    let mut answers = asking.join_all().await.into_iter();
    let first = answers.next().unwrap();
    for answer in answers {
        assert_eq!((answer.status, &answer.body), (202, &first.body));
    }
    assert_eq!(world.count("input"), 2);
}

#[tokio::test]
async fn a_key_belongs_to_its_input() {
    let world = World::new().await;
    let thread = world.begin("hello").await;
    let path = format!("/v1/threads/{thread}/inputs");
    world.post(&path, &json!({ "text": "one", "key": "k" })).await;
    let other = world.post(&path, &json!({ "text": "two", "key": "k" })).await;
    assert_eq!(other.refusal(), (409, "key_reused"));
    let said = json!({ "text": "x", "key": "b" });
    let both = world.post_with(&path, &[("idempotency-key", "a")], &said).await;
    assert_eq!(both.refusal(), (400, "invalid_input"));
}

#[tokio::test]
async fn an_input_for_a_thread_at_rest_is_refused_while_a_run_is_active() {
    let world = World::new().await;
    let thread = world.begin("hello").await;
    let path = format!("/v1/threads/{thread}/inputs");
    let refused = world.post(&path, &json!({ "text": "now", "mode": "reject" })).await;
    assert_eq!(refused.refusal(), (409, "run_active"));
    assert_eq!(world.count("input"), 1);
    for mode in ["enqueue", "steer", "interrupt"] {
        let taken = world.post(&path, &json!({ "text": "now", "mode": mode })).await;
        assert_eq!(taken.status, 202, "{mode}");
    }
}

/// Answers to reads take a while, so that whoever reads at the same time sees the same.
struct SlowReads;

impl Faults for SlowReads {
    fn on(&self, _process: &InstanceId, op: &Op<'_>) -> Fault {
        let is_read = op.kind == OpKind::Read;
        if is_read { Fault::DelayAnswer(Duration::from_millis(50)) } else { Fault::None }
    }
}

#[tokio::test]
async fn of_many_inputs_for_a_thread_at_rest_one_is_taken() {
    let bus = MemoryBus::new(Config { faults: Arc::new(SlowReads), ..Config::default() });
    let journal = Arc::new(bus.handle(&InstanceId::new("gateway").unwrap()));
    let world = World::over(bus, journal, settings()).await;
    let (address, line) = (world.address, format!("POST /v1/threads/{}/inputs", unknown_thread()));
    let mut asking = tokio::task::JoinSet::new();
    for number in 0..20 {
        let line = line.clone();
        let said = json!({ "text": number.to_string(), "mode": "reject", "agent": "helper" });
        asking.spawn(async move { ask(address, &line, &[], Some(&said)).await.status });
    }
    let mut statuses = asking.join_all().await;
    statuses.sort_unstable();
    assert_eq!(statuses[0], 202);
    assert!(statuses[1..].iter().all(|status| *status == 409), "{statuses:?}");
    assert_eq!(world.count("input"), 1);
}

#[tokio::test]
async fn a_thread_without_a_record_needs_an_agent() {
    let world = World::new().await;
    let created = world.post("/v1/threads", &json!({ "agent": "helper" })).await;
    assert_eq!((created.status, &created.body["input"]), (201, &json!(null)));
    let thread = created.body["thread"].as_str().unwrap();
    let path = format!("/v1/threads/{thread}/inputs");
    let nobody = world.post(&path, &json!({ "text": "hello" })).await;
    assert_eq!(nobody.refusal(), (404, "not_found"));
    let taken = world.post(&path, &json!({ "text": "hello", "agent": "helper" })).await;
    assert_eq!(taken.status, 202);
    let taken = world.post(&path, &json!({ "text": "and?" })).await;
    assert_eq!(taken.status, 202);
}

#[tokio::test]
async fn what_is_not_well_formed_is_told_with_its_place() {
    let world = World::new().await;
    let thread = world.begin("hello").await;
    let path = format!("/v1/threads/{thread}/inputs");
    for (body, part) in [
        (json!({ "text": "  " }), "`text` is empty"),
        (json!({ "text": "x", "mod": "steer" }), "unknown field `mod`"),
        (json!({ "text": "x", "mode": "push" }), "unknown variant `push`"),
        (json!({ "text": "x", "complexity": 9 }), "`complexity` is not 1 to 5"),
        (json!({ "text": "x", "agent": "a b" }), "agent name `a b` is not valid"),
        (json!({ "text": "x", "key": "" }), "idempotency key `` is not valid"),
        (json!([]), "the body does not fit"),
    ] {
        let refused = world.post(&path, &body).await;
        assert_eq!(refused.refusal(), (400, "invalid_input"), "{body}");
        let message = refused.body["error"]["message"].as_str().unwrap();
        assert!(message.contains(part), "{message}");
    }
    let refused = world.get("/v1/threads/nonsense").await;
    assert_eq!(refused.refusal(), (400, "invalid_input"));
    let refused = world.get(&format!("/v1/threads/{}", unknown_thread())).await;
    assert_eq!(refused.refusal(), (404, "not_found"));
    assert_eq!(world.get("/v2/threads").await.refusal(), (404, "not_found"));
    assert_eq!(world.get("/v1/threads").await.refusal(), (405, "invalid_input"));
}

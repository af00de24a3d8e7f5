//! Processes that die at points to which no story of the drill comes.

use std::io::Read;

use serde_json::{Value, json};

use crate::deployment::{Deployment, nats_program, redis_program};
use crate::gateway::{Events, post, send};

fn world() -> Option<Deployment> {
    let (program, redis) = (nats_program()?, redis_program()?);
    Some(Deployment::with_redis(program, &redis))
}

#[test]
fn an_input_whose_gateway_dies_around_its_append_is_taken_once() {
    let Some(world) = world() else { return };
    let (planner, worker, heir) =
        (world.planner("planner"), world.worker("worker"), world.gateway("heir"));
    for node in [&planner, &worker, &heir] {
        node.until_ready();
    }
    for point in ["before_input", "after_input"] {
        let mut gateway = world.gateway_that_ends(point);
        gateway.until_ready();
        let order_name = point.split('_').next().unwrap();
        let order = json!({ "agent": "clerk", "input": { "text": format!("order {order_name}") } });
        let key = format!("idempotency-key: {point}\r\n");
        let mut answer = String::new();
        let mut asking = send(&gateway, "POST /v1/threads", &key, &order.to_string());
        // The connection ends without an answer: whether the input was accepted is not known.
        drop(asking.read_to_string(&mut answer));
        assert_eq!(answer, "");
        gateway.until_killed();
        let (status, begun) = post(&heir, "/v1/threads", &key, &order);
        assert_eq!(status, 201, "{begun}");
        let thread = begun["thread"].as_str().unwrap();
        let told = Events::open(&heir, thread, None).until("run_finished");
        let inputs = told.iter().filter(|event| event["type"] == "input").count();
        assert_eq!((inputs, &told.last().unwrap()["outcome"]), (1, &json!("answered")));
    }
    assert_eq!(world.booked(), ["after", "before"]);
}

#[test]
fn an_approval_whose_planner_dies_around_asking_for_it_is_asked_for_once() {
    let Some(world) = world() else { return };
    let (worker, gateway) = (world.worker("worker"), world.gateway("gateway"));
    for node in [&worker, &gateway] {
        node.until_ready();
    }
    for point in ["before_approval_asked", "after_approval_asked"] {
        let mut planner = world.planner_that_ends(point);
        planner.until_ready();
        let order_name = point.split('_').next().unwrap();
        let order = json!({ "agent": "clerk", "input": { "text": format!("sign {order_name}") } });
        let (_, begun) = post(&gateway, "/v1/threads", "", &order);
        let thread = begun["thread"].as_str().unwrap();
        planner.until_killed();
        let heir = world.planner("heir");
        heir.until_ready();
        let mut events = Events::open(&gateway, thread, None);
        let mut told = events.until("approval_asked");
        let asked = told.last().unwrap().clone();
        let call = asked["tool_call_id"].as_str().unwrap();
        let decision = json!({ "approve": true, "arguments_hash": asked["arguments_hash"] });
        let path = format!("/v1/threads/{thread}/approvals/{call}");
        let (status, decided) = post(&gateway, &path, "", &decision);
        assert_eq!(status, 200, "{decided}");
        told.extend(events.until("run_finished"));
        let count = |kind: &str| told.iter().filter(|event| event["type"] == kind).count();
        assert_eq!(count("approval_asked"), 1, "{told:#?}");
        assert_eq!(told.last().unwrap()["outcome"], "answered");
        assert_eq!(heir.stop(), Some(0));
    }
    assert_eq!(world.booked(), ["after", "before"]);
}

#[test]
fn a_record_that_nobody_can_read_is_parked_once_though_its_planner_dies() {
    let Some(world) = world() else { return };
    let (worker, gateway) = (world.worker("worker"), world.gateway("gateway"));
    for node in [&worker, &gateway] {
        node.until_ready();
    }
    for point in ["before_parked", "after_parked"] {
        let order_name = point.split('_').next().unwrap();
        let first = world.planner("first");
        first.until_ready();
        let order = json!({ "agent": "clerk", "input": { "text": format!("order {order_name}") } });
        let (_, begun) = post(&gateway, "/v1/threads", "", &order);
        let thread = begun["thread"].as_str().unwrap().to_owned();
        Events::open(&gateway, &thread, None).until("run_finished");
        assert_eq!(first.stop(), Some(0));

        let mut planner = world.planner_that_ends(point);
        planner.until_ready();
        poison(&world, &thread);
        planner.until_killed();
        let heir = world.planner("heir");
        heir.until_ready();
        let more = json!({ "text": format!("order {order_name}2") });
        let path = format!("/v1/threads/{thread}/inputs");
        let (status, taken) = post(&gateway, &path, "", &more);
        assert_eq!(status, 202, "{taken}");
        let mut events = Events::open(&gateway, &thread, None);
        let mut told = events.until("run_finished");
        told.extend(events.until("run_finished"));
        assert_eq!(told.last().unwrap()["outcome"], "answered");
        let parked = told.iter().filter(|event| event["type"] == "parked").count();
        assert_eq!(parked, 1, "{told:#?}");
        assert_eq!(heir.stop(), Some(0));
    }
    assert_eq!(world.booked(), ["after", "after2", "before", "before2"]);
}

/// The subjects of a thread, of whichever stream, with how many records lie there.
fn subjects(world: &Deployment, thread: &str) -> Vec<(String, u64)> {
    let found = (0..2).flat_map(|part| {
        let query = json!({ "subjects_filter": format!("sy.{part}.*.{thread}.>") });
        let answer = world.nats.ask(&format!("$JS.API.STREAM.INFO.SY_{part}"), &query.to_string());
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let subjects = answer.pointer("/state/subjects").and_then(Value::as_object).cloned();
        subjects.unwrap_or_default()
    });
    found.map(|(subject, count)| (subject, count.as_u64().unwrap())).collect()
}

/// A record that is no record, where inputs lie.
fn poison(world: &Deployment, thread: &str) {
    let all = subjects(world, thread);
    let (inputs, _) =
        all.iter().find(|(subject, _)| subject.rsplit('.').next() == Some("in")).unwrap();
    let stored = world.nats.ask(inputs, "no record");
    assert!(stored.contains("\"seq\""), "{stored}");
}

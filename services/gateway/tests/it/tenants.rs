//! Who may come, and what they see.

use gateway::Settings;
use serde_json::json;

use crate::client::{Events, ask};
use crate::world::{World, settings};

const ACME: (&str, &str) = ("authorization", "Bearer acme-key-0123456789");
const UMBRELLA: (&str, &str) = ("authorization", "bearer umbrella-key-0123456789");

async fn keyed() -> World {
    let keys = ["acme=acme-key-0123456789", "umbrella=umbrella-key-0123456789"];
    let keys = keys.map(|key| key.parse().unwrap()).to_vec();
    World::with(Settings { keys, ..settings() }).await
}

#[tokio::test]
async fn two_tenants_see_nothing_of_one_another() {
    let world = keyed().await;
    let body = json!({ "agent": "helper", "input": { "text": "secret" } });
    let begun = world.post_with("/v1/threads", &[ACME], &body).await;
    let thread = begun.body["thread"].as_str().unwrap();
    let path = format!("/v1/threads/{thread}");
    let own = ask(world.address, &format!("GET {path}"), &[ACME], None).await;
    assert_eq!(own.status, 200);
    let shown = ask(world.address, &format!("GET {path}"), &[UMBRELLA], None).await;
    assert_eq!(shown.refusal(), (404, "not_found"));
    assert_eq!(Events::open(world.address, thread, &[UMBRELLA]).await.err(), Some(404));
    for (what, body) in [
        ("inputs", json!({ "text": "hello" })),
        ("cancel", json!({})),
        ("approvals/call00001", json!({ "approve": true, "arguments_hash": "0".repeat(64) })),
    ] {
        let refused = world.post_with(&format!("{path}/{what}"), &[UMBRELLA], &body).await;
        assert_eq!(refused.refusal(), (404, "not_found"), "{what}");
    }
    assert_eq!(world.count("input"), 1);
    // The same id under another tenant is another thread.
    let named = json!({ "text": "hello", "agent": "helper" });
    let taken = world.post_with(&format!("{path}/inputs"), &[UMBRELLA], &named).await;
    assert_eq!(taken.status, 202);
    let shown = ask(world.address, &format!("GET {path}"), &[ACME], None).await;
    assert_eq!(shown.body, own.body);
}

#[tokio::test]
async fn one_key_in_two_tenants_begins_two_threads() {
    let world = keyed().await;
    let body = json!({ "agent": "helper", "input": { "text": "hello" }, "key": "same" });
    let one = world.post_with("/v1/threads", &[ACME], &body).await;
    let other = world.post_with("/v1/threads", &[UMBRELLA], &body).await;
    assert_ne!(one.body["thread"], other.body["thread"]);
}

#[tokio::test]
async fn without_a_known_key_nobody_is_let_in() {
    let world = keyed().await;
    for headers in [
        [("x", "y")],
        [("authorization", "Bearer nonsense-0123456789")],
        [("authorization", "Basic acme-key-0123456789")],
        [("authorization", "acme-key-0123456789")],
    ] {
        let refused = world.post_with("/v1/threads", &headers, &json!({ "agent": "a" })).await;
        assert_eq!(refused.refusal(), (401, "unauthenticated"), "{headers:?}");
        assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
    }
    // Operators need no key.
    assert_eq!(world.get("/livez").await.status, 200);
}

/// A page of the web can make a browser send requests to this machine: under a name of its own, or
/// with a body that needs no permission.
#[tokio::test]
async fn pages_of_the_web_cannot_use_a_gateway_without_keys() {
    let world = World::new().await;
    let body = json!({ "agent": "helper" });
    let rebound = world.post_with("/v1/threads", &[("host", "evil.example:7070")], &body).await;
    assert_eq!(rebound.refusal(), (403, "not_permitted"));
    let form = world.post_with("/v1/threads", &[("content-type", "text/plain")], &body).await;
    assert_eq!(form.refusal(), (415, "invalid_input"));
    for host in ["localhost:7070", "127.0.0.1", "[::1]:7070"] {
        let let_in = world.post_with("/v1/threads", &[("host", host)], &body).await;
        assert_eq!(let_in.status, 201, "{host}");
    }
}

#[tokio::test]
async fn an_agent_that_nobody_runs_is_refused_where_agents_are_known() {
    let agents = Some(vec!["helper".parse().unwrap()]);
    let world = World::with(Settings { agents, ..settings() }).await;
    let refused = world.post("/v1/threads", &json!({ "agent": "hepler" })).await;
    assert_eq!(refused.refusal(), (404, "not_found"));
    assert!(refused.body["error"]["message"].as_str().unwrap().contains("helper"));
}

//! What is remembered, over HTTP.

use std::sync::Arc;

use gateway::Settings;
use memory_core::fragment::{Fragment, FragmentId, Origin};
use memory_core::kind::Kind;
use ports::recall::{Access, Kept, Recall};
use proto::ids::ThreadId;
use proto::time::Timestamp;
use testkit::recall::RecallMemory;

use crate::client::{Answer, ask};
use crate::contract::hold;
use crate::world::{World, settings, tenant};

const ACME: (&str, &str) = ("authorization", "Bearer acme-key-0123456789");
const UMBRELLA: (&str, &str) = ("authorization", "Bearer umbrella-key-0123456789");

fn kept(turn: u64, text: &str) -> Kept {
    let thread = ThreadId::from_parts(1, 1);
    Kept::new(Fragment {
        id: FragmentId { tenant: tenant("acme"), thread, turn, fragment: 0 },
        origin: Origin::User,
        kind: Kind::Talk,
        text: text.to_owned(),
        at: Timestamp(1),
        tokens: 3,
        entities: Vec::new(),
        importance: 0.5,
        explanation: None,
        facts: Vec::new(),
    })
}

async fn world() -> (World, Arc<RecallMemory>) {
    let keys = ["acme=acme-key-0123456789", "umbrella=umbrella-key-0123456789"];
    let keys = keys.map(|key| key.parse().unwrap()).to_vec();
    let store = Arc::new(RecallMemory::new());
    let memory: Arc<dyn Recall> = Arc::<RecallMemory>::clone(&store);
    let world = World::remembering(Settings { keys, ..settings() }, memory).await;
    let access = Access::of_caller(tenant("acme"));
    let all = vec![kept(0, "the cluster is kestrel"), kept(1, "noted"), kept(7, "far away")];
    store.put(&access, all).await.unwrap();
    (world, store)
}

async fn asked(world: &World, line: &str, who: (&str, &str)) -> Answer {
    let answer = ask(world.address, line, &[who], None).await;
    hold(line, &answer);
    answer
}

fn texts(answer: &Answer) -> Vec<String> {
    let all = answer.body["memories"].as_array().unwrap();
    all.iter().map(|one| one["text"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn memories_are_listed_found_shown_and_forgotten_by_their_own_tenant_alone() {
    let (world, _store) = world().await;
    let all = asked(&world, "GET /v1/memory", ACME).await;
    assert_eq!(texts(&all), ["the cluster is kestrel", "noted", "far away"]);
    let found = asked(&world, "GET /v1/memory?q=kestrel&limit=1", ACME).await;
    assert_eq!(texts(&found), ["the cluster is kestrel"]);
    let id = found.body["memories"][0]["id"].as_str().unwrap().to_owned();
    let path = format!("/v1/memory/{id}");
    let shown = asked(&world, &format!("GET {path}"), ACME).await;
    assert_eq!(shown.body["around"][0]["text"], "noted");
    // Another tenant sees nothing and removes nothing.
    assert_eq!(texts(&asked(&world, "GET /v1/memory", UMBRELLA).await), Vec::<String>::new());
    let other = asked(&world, &format!("GET {path}"), UMBRELLA).await;
    assert_eq!(other.refusal(), (404, "not_found"));
    assert_eq!(asked(&world, &format!("DELETE {path}"), UMBRELLA).await.body["forgotten"], 0);
    assert_eq!(asked(&world, &format!("DELETE {path}"), ACME).await.body["forgotten"], 1);
    let left = asked(&world, "GET /v1/memory", ACME).await;
    assert_eq!(texts(&left), ["noted", "far away"]);
}

#[tokio::test]
async fn what_is_asked_wrongly_is_told() {
    let (world, store) = world().await;
    let wrong = asked(&world, "GET /v1/memory?query=x", ACME).await;
    assert_eq!(wrong.refusal(), (400, "invalid_input"));
    let wrong = asked(&world, "GET /v1/memory/x/y", ACME).await;
    assert_eq!(wrong.refusal(), (400, "invalid_input"));
    store.set_down(true);
    let down = asked(&world, "GET /v1/memory", ACME).await;
    assert_eq!(down.refusal(), (503, "store_unavailable"));
}

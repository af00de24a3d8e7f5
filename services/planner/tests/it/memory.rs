//! What one thread was told, another begins with; and what happens when memory does not answer.

use std::sync::Arc;
use std::time::Duration;

use planner::{Config, Memory};
use ports::embedder::WordsOnly;
use ports::feed::Feed;
use ports::recall::{Access, Filter, Query, Recall, Scope};
use proto::fact::{Fact, Recalled};
use proto::ids::ThreadId;
use proto::model::Finish;
use proto::notice::{LiveNotice, Notice};
use proto::record::Record;
use testkit::model::{ScriptedModel, end, text};
use testkit::recall::RecallMemory;

use crate::snapshots::count;
use crate::world::{World, name};

/// Says back what memory brought in.
fn remembering() -> ScriptedModel {
    ScriptedModel::new(|request| {
        let block = request.head.iter().find(|block| block.name == "recalled");
        let said = block.map_or_else(|| "Noted.".to_owned(), |block| block.text.clone());
        Ok(vec![text(said), end(Finish::Stop)])
    })
}

fn config(world: &World, store: &Arc<RecallMemory>, instance: &str) -> Config {
    let feed: Arc<dyn Feed> = Arc::new(world.bus.handle(&name(instance)));
    let recall: Arc<dyn Recall> = Arc::<RecallMemory>::clone(store);
    let redact = Arc::new(|text: &str| text.replace("hunter2", "[redacted]"));
    let memory = Memory::new(recall, Arc::new(WordsOnly), feed, redact);
    Config { memory: Some(memory), ..Config::new(name(instance)) }
}

fn access(world: &World) -> Access {
    Access::of_thread(&world.place)
}

async fn until_indexed(world: &World, store: &RecallMemory, least: u64) {
    for _ in 0..6_000 {
        if store.size(&access(world)).await.is_ok_and(|size| size.fragments >= least) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{least} pieces were never indexed");
}

fn recalled(world: &World) -> Vec<Recalled> {
    let mut brought = Vec::new();
    for record in world.records() {
        if let Record::Fact(Fact::TurnStarted(turn)) = record {
            brought = turn.recalled;
        }
    }
    brought
}

fn next_thread(world: &mut World) {
    world.place.thread = ThreadId::from_parts(2, 2);
}

#[tokio::test(start_paused = true)]
async fn a_second_thread_begins_with_what_the_first_was_told() {
    let store = Arc::new(RecallMemory::new());
    let mut world = World::new(remembering()).await;
    let metrics = world.planner_of(config(&world, &store, "one"), 1);
    world.message("a", "The staging cluster is called kestrel, password: hunter2.").await;
    world.until_finished().await;
    until_indexed(&world, &store, 2).await;
    next_thread(&mut world);
    world.message("b", "Which staging cluster do we have?").await;
    world.until_started(2).await;
    let brought = recalled(&world);
    assert!(brought.iter().any(|one| one.text.contains("kestrel")), "{brought:?}");
    assert!(brought.iter().all(|one| one.source.ends_with("/0.0") || one.source.ends_with("/1.0")));
    assert!(brought.iter().all(|one| !one.text.contains("hunter2")), "secrets stay out");
    let answer = world
        .until("the answer", |record| {
            matches!(record, Record::Fact(Fact::RunFinished(end)) if end.answer.contains("kestrel"))
        })
        .await;
    assert!(matches!(answer, Record::Fact(_)));
    assert_eq!(count(&metrics, "recall_failures_total", None), 0);
    // What was recalled is not kept as something new.
    until_indexed(&world, &store, 4).await;
    let all = store.list(&access(&world), &Filter::default(), None, 100).await.unwrap();
    let user = all.iter().filter(|kept| kept.fragment.id.thread == world.place.thread);
    let texts: Vec<&str> = user.map(|kept| kept.fragment.text.as_str()).collect();
    assert_eq!(texts.first(), Some(&"Which staging cluster do we have?"));
    assert_eq!(texts.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_run_goes_on_without_a_memory_that_is_down_and_says_so_and_the_indexer_catches_up() {
    let store = Arc::new(RecallMemory::new());
    store.set_down(true);
    let mut world = World::new(remembering()).await;
    let mut heard = world.listen().await;
    let metrics = world.planner_of(config(&world, &store, "one"), 1);
    world.message("a", "The staging cluster is called kestrel.").await;
    let finished = world.until_finished().await;
    assert_eq!(finished.answer, "Noted.");
    assert_eq!(count(&metrics, "recall_failures_total", None), 1);
    let mut because = None;
    while because.is_none() {
        let (_, message) = heard.next().await.unwrap();
        if let Ok(LiveNotice { notice: Notice::WithoutMemory { because: told }, turn, .. }) =
            serde_json::from_slice(&message)
        {
            assert_eq!(turn, 1);
            because = Some(told);
        }
    }
    assert!(because.unwrap().contains("down"));
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(count(&metrics, "memory_index_failures_total", None) > 0);
    store.set_down(false);
    until_indexed(&world, &store, 2).await;
}

#[tokio::test(start_paused = true)]
async fn another_planner_goes_on_where_the_indexer_died_and_puts_nothing_twice() {
    let store = Arc::new(RecallMemory::new());
    let mut world = World::new(remembering()).await;
    world.planner_of(config(&world, &store, "one"), 1);
    world.message("a", "The staging cluster is called kestrel.").await;
    world.until_finished().await;
    until_indexed(&world, &store, 2).await;
    world.bus.kill(&name("one"));
    // Its cursor is lost: all is read again.
    store.keep_cursor("indexer-0", "0 ").await.unwrap();
    let metrics = world.planner_of(config(&world, &store, "two"), 2);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(count(&metrics, "memory_indexed_total", None), 0, "all of it was there");
    assert_eq!(store.size(&access(&world)).await.unwrap().fragments, 2);
    let cursor = store.cursor("indexer-0").await.unwrap().unwrap();
    assert_ne!(cursor, "0 ");
}

#[tokio::test(start_paused = true)]
async fn what_was_forgotten_is_not_indexed_again() {
    let store = Arc::new(RecallMemory::new());
    let mut world = World::new(remembering()).await;
    world.planner_of(config(&world, &store, "one"), 1);
    world.message("a", "The staging cluster is called kestrel.").await;
    world.until_finished().await;
    until_indexed(&world, &store, 2).await;
    let scope = Scope::Thread { thread: world.place.thread };
    let now = world.bus.now();
    assert_eq!(store.forget(&access(&world), &scope, now).await, Ok(2));
    store.keep_cursor("indexer-0", "0 ").await.unwrap();
    world.bus.kill(&name("one"));
    let metrics = world.planner_of(config(&world, &store, "two"), 2);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(count(&metrics, "memory_late_total", None), 2);
    assert_eq!(store.size(&access(&world)).await.unwrap().fragments, 0);
}

#[tokio::test(start_paused = true)]
async fn a_later_fact_hides_the_earlier_one_and_both_tell_why_they_matter() {
    let store = Arc::new(RecallMemory::new());
    let mut world = World::new(remembering()).await;
    world.planner_of(config(&world, &store, "one"), 1);
    for (key, text) in [("a", "The port of web-03 is 8080."), ("b", "The port of web-03 is 9090.")]
    {
        world.message(key, text).await;
        let runs = u64::from(key == "b") + 1;
        until_indexed(&world, &store, runs * 2).await;
    }
    let query = Query::words("which port has web-03", 10, world.bus.now());
    let hits = store.query(&access(&world), &query).await.unwrap();
    let ports: Vec<&str> = hits
        .iter()
        .map(|hit| hit.kept.fragment.text.as_str())
        .filter(|text| text.starts_with("The port"))
        .collect();
    assert_eq!(ports, ["The port of web-03 is 9090."]);
    let all = store.list(&access(&world), &Filter::default(), None, 10).await.unwrap();
    let old = &all[0];
    assert_eq!(old.superseded_by.as_ref().map(|id| id.turn), Some(2));
    let explanation = old.fragment.explanation.as_ref().unwrap();
    assert!(
        (explanation.score - old.fragment.importance).abs() < 1e-9 || old.fragment.kind.is_pinned()
    );
}

//! A journal that has lost its newest records.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use proto::error_code::ErrorCode;
use proto::fact::{EndReason, Fact};
use proto::ids::Partition;
use proto::model::Finish;
use proto::record::Record;
use proto::transcript::Entry;
use serde_json::Map;
use testkit::model::{ScriptedModel, call, end, text};

use crate::world::{World, name};

/// Calls `tool` for each message, then answers; counts how often it was asked.
fn counted(tool: &'static str) -> (ScriptedModel, Arc<AtomicU32>) {
    let asked = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&asked);
    let model = ScriptedModel::new(move |request| {
        count.fetch_add(1, Ordering::Relaxed);
        let last = request.transcript.entries().last();
        Ok(if matches!(last, Some(Entry::User { .. })) {
            vec![text("Doing it. "), call(0, tool, Map::new()), end(Finish::ToolCalls)]
        } else {
            vec![text("All is well."), end(Finish::Stop)]
        })
    });
    (model, asked)
}

/// A thread that waits for its call; the journal then loses its last two records, and a server that
/// was away is noticed.
async fn struck(model: ScriptedModel, before: &str) -> World {
    let mut world = World::new(model).await;
    world.planner("planner-a", 1);
    world.message("1", "do it").await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(world.trace_left(), before);
    world.bus.lose_tail(Partition(0), 2);
    world
}

fn is_sound(world: &World) {
    assert_eq!(invariants::check_at_rest(&world.left()), [], "{}", world.trace_left());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_lost_is_made_again_and_the_model_is_not_asked_again() {
    let (model, asked) = counted("look");
    let mut world = struck(model, "input started1.1 call:look completed1").await;
    world.bus.cut_off(&name("planner-a"), Duration::from_secs(1));
    world.worker("look");
    let end = world.until_finished().await;
    assert_eq!((end.reason, end.turns, end.calls), (EndReason::Answer, 2, 1));
    assert_eq!(
        world.trace_left(),
        "input started1.1 tick restored call:look observation started2.1 completed2 finished:Answer"
    );
    assert_eq!(asked.load(Ordering::Relaxed), 2);
    is_sound(&world);
}

#[tokio::test(start_paused = true)]
async fn another_planner_restores_from_the_snapshot() {
    let (model, asked) = counted("look");
    let mut world = struck(model, "input started1.1 call:look completed1").await;
    world.bus.kill(&name("planner-a"));
    let metrics = world.planner("planner-b", 2);
    world.worker("look");
    world.message("2", "and then?").await;
    world
        .until(
            "the end of run 2",
            |record| matches!(record, Record::Fact(Fact::RunFinished(end)) if end.run == 2),
        )
        .await;
    assert_eq!(asked.load(Ordering::Relaxed), 4);
    assert_eq!(crate::snapshots::count(&metrics, "restored_total", None), 1);
    is_sound(&world);
}

#[tokio::test(start_paused = true)]
async fn an_irreversible_call_that_was_lost_is_in_doubt_and_barred() {
    let (model, _) = counted("pay");
    let mut world = struck(model, "input started1.1 completed1 call:pay").await;
    world.bus.cut_off(&name("planner-a"), Duration::from_secs(1));
    world.worker("pay");
    let end = world.until_finished().await;
    assert_eq!((end.reason, end.calls), (EndReason::Answer, 1));
    assert_eq!(
        world.trace_left(),
        "input started1.1 tick start restored started2.1 completed2 finished:Answer"
    );
    let is_restored = |record: &Record| matches!(record, Record::Fact(Fact::Restored(_)));
    let restored = world.until("the restored record", is_restored).await;
    let Record::Fact(Fact::Restored(restored)) = restored else { panic!("{restored:?}") };
    let doubts: Vec<_> = restored.doubts.into_iter().map(|doubt| doubt.code).collect();
    assert_eq!(doubts, [Some(ErrorCode::InDoubt)]);
    is_sound(&world);
}

/// The lost numbers are taken by other records before anybody looks.
#[tokio::test(start_paused = true)]
async fn numbers_that_are_used_again_hide_nothing() {
    let (model, asked) = counted("look");
    let mut world = struck(model, "input started1.1 call:look completed1").await;
    world.message("2", "one").await;
    world.message("3", "two").await;
    world.worker("look");
    world
        .until(
            "the end of run 2",
            |record| matches!(record, Record::Fact(Fact::RunFinished(end)) if end.run == 2),
        )
        .await;
    assert!(world.trace_left().starts_with("input started1.1 input input restored call:look"));
    assert_eq!(asked.load(Ordering::Relaxed), 4);
    is_sound(&world);
}

/// Nobody knows more than the journal says: the run goes on from there.
#[tokio::test(start_paused = true)]
async fn without_anybody_who_knew_more_the_journal_is_right() {
    let (model, asked) = counted("look");
    let mut world = struck(model, "input started1.1 call:look completed1").await;
    world.bus.kill(&name("planner-a"));
    world.bus.working_memory().forget_all();
    world.planner("planner-b", 2);
    world.worker("look");
    world.message("2", "hello?").await;
    world.until_finished().await;
    assert!(!world.trace_left().contains("restored"), "{}", world.trace_left());
    assert!(asked.load(Ordering::Relaxed) >= 3);
}

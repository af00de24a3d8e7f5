//! Threads whose older records are purged.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use planner::Config;
use proto::fact::Fact;
use proto::model::Finish;
use proto::record::Record;
use proto::transcript::Entry;
use testkit::model::{ScriptedModel, end, text};

use crate::world::{World, name};

/// Answers at once; remembers how many of the user's words the newest request held.
fn listener() -> (ScriptedModel, Arc<AtomicUsize>) {
    let heard = Arc::new(AtomicUsize::new(0));
    let words = Arc::clone(&heard);
    let model = ScriptedModel::new(move |request| {
        let entries = request.transcript.entries().iter();
        let said = entries.filter(|entry| matches!(entry, Entry::User { .. })).count();
        words.store(said, Ordering::Relaxed);
        Ok(vec![text("All is well."), end(Finish::Stop)])
    });
    (model, heard)
}

fn keeping(instance: &str, runs: u32) -> Config {
    Config { keep_runs: Some(runs), ..Config::new(name(instance)) }
}

async fn runs(world: &World, from: u32, to: u32) {
    // Records are purged only once no worker would begin a call of theirs any more.
    runs_apart(world, from, to, Duration::from_mins(3)).await;
}

async fn runs_apart(world: &World, from: u32, to: u32, pause: Duration) {
    for run in from..=to {
        world.message(&run.to_string(), "hello").await;
        let is_end = |record: &Record| matches!(record, Record::Fact(Fact::RunFinished(end)) if end.run == run);
        world.until("the end of the run", is_end).await;
        tokio::time::sleep(pause).await;
    }
}

const RUN: &str = "input started1.1 completed1 finished:Answer";

#[tokio::test(start_paused = true)]
async fn older_runs_are_purged_and_the_model_still_knows_them() {
    let (model, heard) = listener();
    let mut world = World::new(model).await;
    world.planner_of(keeping("planner-a", 2), 1);
    runs(&world, 1, 5).await;
    assert_eq!(world.trace_left(), format!("checkpoint {RUN} {RUN} checkpoint {RUN}"));
    assert_eq!(invariants::check_at_rest(&world.left()), []);
    world.bus.kill(&name("planner-a"));
    world.bus.working_memory().forget_all();
    let metrics = world.planner_of(keeping("planner-b", 2), 2);
    runs(&world, 6, 6).await;
    assert_eq!(crate::snapshots::count(&metrics, "folds_total", Some("journal")), 1);
    assert_eq!(heard.load(Ordering::Relaxed), 6);
}

/// The state that the journal begins with, the newest, and one that its last reader may still fold from.
#[tokio::test(start_paused = true)]
async fn states_that_nothing_names_any_more_are_removed() {
    let mut world = World::new(listener().0).await;
    world.planner_of(keeping("planner-a", 1), 1);
    for run in 1..=12 {
        runs(&world, run, run).await;
        let kept = world.bus.artifacts(&world.place);
        assert!(kept.len() <= 4, "{} states after run {run}", kept.len());
        let named = world.left().into_iter().filter_map(|placed| match placed.record {
            Record::Fact(Fact::Checkpoint(checkpoint)) => Some(checkpoint.state.id),
            Record::Fact(_)
            | Record::Input(_)
            | Record::ToolCall(_)
            | Record::Start(_)
            | Record::Observation(_)
            | Record::Tick => None,
        });
        let missing: Vec<_> = named.filter(|id| !kept.contains(id)).collect();
        assert_eq!(missing, [], "after run {run}");
    }
}

/// A planner that ends between its checkpoint and what follows from it leaves no state behind for ever.
#[tokio::test(start_paused = true)]
async fn what_a_planner_left_behind_at_its_checkpoint_the_next_one_removes() {
    let mut world = World::new(listener().0).await;
    for (number, planner) in ["planner-a", "planner-b", "planner-c", "planner-d"].iter().enumerate()
    {
        let seed = u64::try_from(number).unwrap() + 1;
        world.planner_of(keeping(planner, 1), seed);
        let first = u32::try_from(number).unwrap() * 3 + 1;
        runs(&world, first, first + 2).await;
        world.bus.kill(&name(planner));
    }
    let kept = world.bus.artifacts(&world.place).len();
    assert!(kept <= 4, "{kept} states");
}

/// A call of a purged record could not be told from one that never began, and a worker may still have
/// one in hand.
#[tokio::test(start_paused = true)]
async fn records_of_calls_that_may_still_begin_are_not_purged() {
    let mut world = World::new(listener().0).await;
    world.planner_of(keeping("planner-a", 1), 1);
    runs_apart(&world, 1, 4, Duration::from_secs(1)).await;
    let early = world.trace_left();
    assert!(early.starts_with(&format!("{RUN} checkpoint {RUN}")), "{early}");
    runs(&world, 5, 6).await;
    let late = world.trace_left();
    assert!(late.starts_with(&format!("checkpoint {RUN}")), "{late}");
}

/// A client that repeats itself long after is still known by its key.
#[tokio::test(start_paused = true)]
async fn the_key_of_an_input_that_was_purged_is_known_for_ever() {
    let mut world = World::new(listener().0).await;
    world.planner_of(keeping("planner-a", 1), 1);
    runs(&world, 1, 3).await;
    world.bus.kill(&name("planner-a"));
    world.bus.working_memory().forget_all();
    world.planner_of(keeping("planner-b", 1), 2);
    world.message("1", "hello").await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    let ends = world.left().into_iter().filter_map(|placed| match placed.record {
        Record::Fact(Fact::RunFinished(end)) => Some(end.run),
        Record::Fact(_)
        | Record::Input(_)
        | Record::ToolCall(_)
        | Record::Start(_)
        | Record::Observation(_)
        | Record::Tick => None,
    });
    assert_eq!(ends.max(), Some(3));
}

/// The records before a checkpoint are purged later than it is written, so a state that is gone is
/// only needed where they are gone too.
#[tokio::test(start_paused = true)]
async fn without_the_kept_state_the_thread_goes_on_from_the_records_there_are() {
    let (model, heard) = listener();
    let mut world = World::new(model).await;
    world.planner_of(keeping("planner-a", 1), 1);
    runs(&world, 1, 4).await;
    world.bus.kill(&name("planner-a"));
    world.bus.working_memory().forget_all();
    world.bus.forget_artifacts();
    world.planner_of(keeping("planner-b", 1), 2);
    runs(&world, 5, 5).await;
    assert_eq!(heard.load(Ordering::Relaxed), 2);
}

//! Folds kept in working memory.

use std::time::Duration;

use bytes::Bytes;
use planner::Metrics;
use ports::working_memory::{Snapshot, WorkingMemory};
use proto::fact::Fact;
use proto::ids::Sequence;
use proto::model::Finish;
use proto::record::Record;
use proto::saved::SavedThread;
use serde_json::Map;
use testkit::model::{ScriptedModel, call, end, text};

use crate::world::World;

/// Each run looks once and answers: two turns.
fn two_turns() -> ScriptedModel {
    ScriptedModel::new(|request| {
        let entries = request.transcript.entries();
        let asked = matches!(entries.last(), Some(proto::transcript::Entry::User { .. }));
        Ok(if asked {
            vec![text("Looking."), call(0, "look", Map::new()), end(Finish::ToolCalls)]
        } else {
            vec![text("All is well."), end(Finish::Stop)]
        })
    })
}

/// The sum of a counter over those of its series that carry the label value, if one is asked for.
pub(crate) fn count(metrics: &Metrics, name: &str, label: Option<&str>) -> u64 {
    let families = metrics.registry().gather();
    let family = families.iter().find(|family| family.name().ends_with(name)).unwrap();
    let fits = |metric: &&prometheus::proto::Metric| {
        label.is_none_or(|label| metric.get_label().iter().any(|pair| pair.value() == label))
    };
    let values =
        family.get_metric().iter().filter(fits).map(|metric| metric.get_counter().get_value());
    values.sum::<f64>().abs().to_string().parse().unwrap()
}

/// Waits for the end of a run, which is the last record of a thread that rests.
async fn until_ended(world: &World, run: u32) {
    for _ in 0..60_000 {
        let newest = world.bus.journal(&world.place).pop().map(|stored| stored.placed().unwrap());
        if let Some(Record::Fact(Fact::RunFinished(end))) = newest.map(|placed| placed.record)
            && end.run == run
        {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("run {run} never ended:\n{}", world.trace());
}

async fn runs(world: &World, from: u32, to: u32) {
    for run in from..=to {
        world.message(&run.to_string(), "look").await;
        until_ended(world, run).await;
    }
}

/// A world in which a planner has made fifty turns and died a while later.
async fn fifty_turns() -> World {
    let mut world = World::new(two_turns()).await;
    world.planner("planner-a", 1);
    world.worker("look");
    runs(&world, 1, 25).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    world.bus.kill(&crate::world::name("planner-a"));
    world
}

#[tokio::test(start_paused = true)]
async fn a_planner_goes_on_from_what_another_one_kept() {
    let mut world = fifty_turns().await;
    let before = world.bus.journal(&world.place).len();
    let metrics = world.planner("planner-b", 2);
    runs(&world, 26, 26).await;
    let read = count(&metrics, "records_read_total", None);
    let folds = ["snapshot", "journal"].map(|from| count(&metrics, "folds_total", Some(from)));
    assert_eq!(folds, [1, 0]);
    assert!(before == 200 && read < 20, "{read} of {before} records were read");
}

#[tokio::test(start_paused = true)]
async fn without_a_snapshot_the_whole_journal_is_folded() {
    let mut world = fifty_turns().await;
    let before = world.bus.journal(&world.place).len();
    world.bus.working_memory().forget_all();
    let metrics = world.planner("planner-b", 2);
    runs(&world, 26, 26).await;
    let read = count(&metrics, "records_read_total", None);
    assert_eq!(count(&metrics, "folds_total", Some("journal")), 1);
    assert!(read >= 200, "{read} of {before} records were read");
}

/// Whatever stands there: a state that is older, broken, or another thread's never misleads.
#[tokio::test(start_paused = true)]
async fn a_snapshot_that_is_no_use_is_passed_over() {
    let mut world = fifty_turns().await;
    let working = world.bus.handle(&crate::world::name("client"));
    let kept = working.snapshot(&world.place).await.unwrap().unwrap();
    let mut others = SavedThread::decode(&kept.payload).unwrap();
    others.place.thread = proto::ids::ThreadId::from_parts(9, 9);
    for (number, payload) in
        [Bytes::from_static(b"{"), Bytes::from(others.encode())].iter().enumerate()
    {
        let sequence = Sequence(kept.sequence.0 + 1000 + u64::try_from(number).unwrap());
        let snapshot = Snapshot { sequence, payload: payload.clone() };
        working.keep_snapshot(&world.place, snapshot).await.unwrap();
        let name = format!("planner-{number}");
        let metrics = world.planner(&name, 9);
        let run = 26 + u32::try_from(number).unwrap();
        runs(&world, run, run).await;
        assert_eq!(count(&metrics, "folds_total", Some("journal")), 1, "{name}");
        world.bus.kill(&crate::world::name(&name));
    }
}

/// A newer build may know of it what this one cannot: it decides nothing.
#[tokio::test(start_paused = true)]
async fn a_snapshot_for_newer_planners_is_left_to_them() {
    let mut world = fifty_turns().await;
    let working = world.bus.handle(&crate::world::name("client"));
    let payload = Bytes::from_static(b"{\"v\":9,\"min_reader\":9,\"thread\":{}}");
    let snapshot = Snapshot { sequence: Sequence(1_000_000), payload };
    working.keep_snapshot(&world.place, snapshot).await.unwrap();
    world.planner("planner-b", 2);
    world.message("26", "look").await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    let starts = |record: &&Record| matches!(record, Record::Fact(Fact::TurnStarted(_)));
    assert_eq!(world.records().iter().filter(starts).count(), 50);
}

//! A worker that dies between any two steps, or stands still.

use std::time::Duration;

use proto::observation::Receipt;
use proto::record::{Placed, Record};
use proto::tool::Effect;
use testkit::memory::faults::Fault;

use crate::plan::Plan;
use crate::tool::{Act, ScriptedTool};
use crate::world::{World, instance};

/// More steps than any call takes.
const STEPS: usize = 20;

/// Kills the first worker at its step `number`, lets a second one finish. Answers the world and
/// whether the first one died.
async fn killed(effect: Effect, number: usize, fault: Fault) -> (World, bool) {
    let plan = Plan::none().on_number("w1", number, fault);
    let tool = ScriptedTool::new([Act::Say("done")]);
    let probe = ScriptedTool::new([Act::Say("there")]);
    let mut world = World::with(effect, tool, &plan).with_probe(probe);
    world.dispatch("a").await;
    let first = world.worker();
    let second = world.worker();
    world.until_acked().await;
    drop((first, second));
    (world, plan.fired() == 1)
}

#[tokio::test(start_paused = true)]
async fn wherever_a_worker_dies_an_irreversible_call_has_one_effect_and_one_observation() {
    let mut deaths = 0;
    for number in 0..STEPS {
        for fault in [Fault::CrashBefore, Fault::CrashAfter] {
            let (world, died) = killed(Effect::Irreversible, number, fault).await;
            deaths += usize::from(died);
            assert!(world.tool.effects().len() <= 1, "step {number} {fault:?}\n{}", world.story());
            assert_eq!(world.observations().len(), 1, "step {number} {fault:?}\n{}", world.story());
            let starts = world.records().into_iter().filter(|r| matches!(r, Record::Start(_)));
            assert_eq!(starts.count(), 1, "step {number} {fault:?}");
        }
    }
    assert!(deaths >= 10, "only {deaths} steps were reached");
}

#[tokio::test(start_paused = true)]
async fn wherever_a_worker_dies_a_repeatable_call_is_answered_with_its_result() {
    for effect in [Effect::ReadOnly, Effect::Idempotent, Effect::Checkable] {
        for number in 0..STEPS {
            for fault in [Fault::CrashBefore, Fault::CrashAfter] {
                let (world, _) = killed(effect, number, fault).await;
                let seen = world.observations();
                let place = format!("{effect:?} step {number} {fault:?}\n{}", world.story());
                assert_eq!(seen.len(), 1, "{place}");
                assert_eq!(seen[0].code, None, "{place}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn wherever_a_worker_dies_the_journal_keeps_every_rule() {
    for effect in [Effect::Checkable, Effect::Irreversible] {
        for number in 0..STEPS {
            let (world, _) = killed(effect, number, Fault::CrashAfter).await;
            let history: Vec<Placed> = placed(&world);
            let broken: Vec<_> = invariants::check(&history)
                .into_iter()
                // The test dispatches without a planner's turn around the call.
                .filter(|violation| violation.invariant != invariants::Invariant::CallsAreNamed)
                .collect();
            assert_eq!(broken, [], "{effect:?} step {number}");
        }
    }
}

fn placed(world: &World) -> Vec<Placed> {
    let stored = world.bus.history(0);
    let each = stored.iter().map(|stored| {
        let envelope = proto::envelope::Envelope::decode(&stored.payload).unwrap();
        Placed {
            sequence: stored.sequence,
            at: stored.at,
            nonce: envelope.nonce,
            record: envelope.body,
        }
    });
    each.collect()
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_stands_still_after_its_claim_begins_nothing() {
    let plan = Plan::none().on_start("w1", Fault::DelayAnswer(Duration::from_secs(1)));
    let mut world = World::with(Effect::Irreversible, ScriptedTool::new([Act::Say("done")]), &plan);
    world.dispatch("a").await;
    let _first = world.worker();
    world.until("the claim", |_| plan.fired() == 1).await;
    world.bus.pause(&instance("w1"), Duration::from_secs(30));
    let _second = world.worker();
    world.until_acked().await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(world.tool.effects().len(), 0);
    let told = world.observations();
    // The second worker could only doubt; the first one knows, and says so late.
    let told: Vec<_> = told.iter().map(|seen| (seen.attempt, seen.receipt)).collect();
    assert_eq!(told, [(0, Some(Receipt::Unknown)), (1, Some(Receipt::StoppedBeforeEffect))]);
}

#[tokio::test(start_paused = true)]
async fn a_result_that_was_kept_is_published_by_the_next_worker() {
    let plan = Plan::none().on_observation("w1", Fault::CrashBefore);
    let mut world = World::with(Effect::Irreversible, ScriptedTool::new([Act::Say("done")]), &plan);
    world.dispatch("a").await;
    let _first = world.worker();
    world.until("the crash", |_| plan.fired() == 1).await;
    let _second = world.worker();
    world.until_acked().await;
    assert_eq!(world.story(), "start 1 by w1\nobs 1 ok: done");
    assert_eq!(world.tool.effects().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn working_memory_that_forgets_costs_a_doubt_and_no_effect() {
    let plan = Plan::none().on_observation("w1", Fault::CrashBefore);
    let mut world = World::with(Effect::Irreversible, ScriptedTool::new([Act::Say("done")]), &plan);
    world.dispatch("a").await;
    let _first = world.worker();
    world.until("the crash", |_| plan.fired() == 1).await;
    world.bus.working_memory().forget_all();
    let _second = world.worker();
    world.until_acked().await;
    assert!(world.story().starts_with("start 1 by w1\nobs 0 in_doubt Unknown"));
    assert_eq!(world.tool.effects().len(), 1);
}

//! A cancel at each stage of a call.

use std::time::Duration;

use expect_test::expect;
use proto::tool::Effect;
use testkit::memory::faults::{Fault, OpKind};

use crate::plan::Plan;
use crate::tool::{Act, ScriptedTool};
use crate::world::World;

#[tokio::test(start_paused = true)]
async fn a_call_that_was_cancelled_before_its_delivery_never_starts() {
    let never = "Cancelled. The call never started and nothing happened.";
    for (effect, bar) in [(Effect::ReadOnly, ""), (Effect::Irreversible, "bar by w1\n")] {
        let mut world = World::new(effect, ScriptedTool::new([Act::Say("done")]));
        world.dispatch("a").await;
        world.mark_cancelled("a").await;
        let _worker = world.worker();
        world.until_acked().await;
        assert_eq!(world.story(), format!("{bar}obs 0 cancelled NeverStarted: {never}"));
        assert_eq!(world.tool.prepared(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_cancelled_while_it_is_made_ready_never_starts() {
    let mut world = World::new(Effect::Irreversible, ScriptedTool::new([Act::Unready]));
    world.dispatch("a").await;
    let _worker = world.worker();
    world.until("a tool being made ready", |world| world.tool.prepared() == 1).await;
    world.hint_cancel("a").await;
    world.until_acked().await;
    expect![[r"
        bar by w1
        obs 0 cancelled NeverStarted: Cancelled. The call never started and nothing happened."]]
    .assert_eq(&world.story());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_cancelled_between_start_and_effect_has_none() {
    let plan = Plan::none().on_start("w1", Fault::DelayAnswer(Duration::from_secs(1)));
    let tool = ScriptedTool::new([Act::Say("done")]);
    let mut world = World::with(Effect::Irreversible, tool, &plan);
    world.dispatch("a").await;
    let _worker = world.worker();
    world.until("the start", |_| plan.fired() == 1).await;
    world.hint_cancel("a").await;
    world.until_acked().await;
    expect![[r"
        start 1 by w1
        obs 1 cancelled StoppedBeforeEffect: Cancelled. The call was stopped before it had any effect."]]
    .assert_eq(&world.story());
    assert_eq!(world.tool.effects().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_running_call_is_stopped_and_says_how_far_it_had_come() {
    for (effect, receipt) in
        [(Effect::ReadOnly, "StoppedBeforeEffect"), (Effect::Idempotent, "StoppedAfterEffectBegan")]
    {
        let mut world = World::new(effect, ScriptedTool::new([Act::Hang]));
        world.dispatch("a").await;
        let _worker = world.worker();
        world.until_effect().await;
        world.hint_cancel("a").await;
        world.until_acked().await;
        assert_eq!(world.story(), format!("obs 1 cancelled {receipt}: so far"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_whose_hint_was_lost_is_found_in_working_memory() {
    let mut world = World::new(Effect::Idempotent, ScriptedTool::new([Act::Hang]));
    world.contract.timeout_ms = 600_000;
    world.dispatch("a").await;
    let _worker = world.worker();
    world.until_effect().await;
    world.mark_cancelled("a").await;
    world.until_acked().await;
    expect!["obs 1 cancelled StoppedAfterEffectBegan: so far"].assert_eq(&world.story());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_cancelled_between_two_attempts_makes_no_further_one() {
    let mut world = World::new(Effect::Idempotent, ScriptedTool::new([Act::Fail]));
    world.contract.retry.backoff_ms = 60_000;
    world.dispatch("a").await;
    let _worker = world.worker();
    world.until_effect().await;
    world.hint_cancel("a").await;
    world.until_acked().await;
    assert_eq!(world.tool.effects().len(), 1);
    let seen = world.observations().remove(0);
    assert_eq!(seen.code, Some(proto::error_code::ErrorCode::Cancelled));
}

#[tokio::test(start_paused = true)]
async fn a_cancel_that_comes_after_the_result_changes_nothing() {
    let plan = Plan::none().on_observation("w1", Fault::DelayAnswer(Duration::from_secs(3)));
    let mut world = World::with(Effect::Irreversible, ScriptedTool::new([Act::Say("done")]), &plan);
    world.dispatch("a").await;
    let _worker = world.worker();
    world.until("the observation", |_| plan.fired() == 1).await;
    world.hint_cancel("a").await;
    world.until_acked().await;
    expect![[r"
        start 1 by w1
        obs 1 ok: done"]]
    .assert_eq(&world.story());
}

#[tokio::test(start_paused = true)]
async fn a_hint_for_another_call_stops_nothing() {
    let lossy = Plan::none().always("planner", OpKind::Publish, Fault::None);
    let mut world =
        World::with(Effect::ReadOnly, ScriptedTool::new([Act::Hang, Act::Say("done")]), &lossy);
    world.dispatch("a").await;
    let _worker = world.worker();
    world.until_effect().await;
    world.hint_cancel("b").await;
    world.until_acked().await;
    expect!["obs 2 ok: done"].assert_eq(&world.story());
}

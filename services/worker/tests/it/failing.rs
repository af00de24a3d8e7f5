//! Tools and stores that fail.

use std::time::Duration;

use expect_test::expect;
use ports::journal::Fence;
use proto::error_code::ErrorCode;
use proto::record::Record;
use proto::tool::Effect;
use testkit::memory::faults::{Fault, Landing, OpKind};

use crate::plan::Plan;
use crate::tool::{Act, ScriptedTool};
use crate::world::World;

async fn story(mut world: World) -> (String, usize) {
    world.dispatch("a").await;
    let _worker = world.worker();
    world.until_acked().await;
    (world.story(), world.tool.effects().len())
}

#[tokio::test(start_paused = true)]
async fn a_reading_tool_is_tried_three_times() {
    let tool = ScriptedTool::new([Act::Fail, Act::Crash, Act::Say("active")]);
    let (story, effects) = story(World::new(Effect::ReadOnly, tool)).await;
    expect!["obs 3 ok: active"].assert_eq(&story);
    assert_eq!(effects, 3);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_keeps_failing_is_reported_after_the_last_try() {
    let (story, effects) =
        story(World::new(Effect::ReadOnly, ScriptedTool::new([Act::Fail]))).await;
    expect!["obs 3 tool_failed: busy"].assert_eq(&story);
    assert_eq!(effects, 3);
}

#[tokio::test(start_paused = true)]
async fn an_irreversible_tool_that_fails_is_not_tried_again() {
    let world = World::new(Effect::Irreversible, ScriptedTool::new([Act::Fail]));
    let (story, effects) = story(world).await;
    expect![[r"
        start 1 by w1
        obs 1 tool_failed: busy"]]
    .assert_eq(&story);
    assert_eq!(effects, 1);
}

#[tokio::test(start_paused = true)]
async fn an_irreversible_tool_that_hangs_is_in_doubt() {
    let world = World::new(Effect::Irreversible, ScriptedTool::new([Act::Hang]));
    let (story, effects) = story(world).await;
    expect![[r"
        start 1 by w1
        obs 1 in_doubt Unknown: so far"]]
    .assert_eq(&story);
    assert_eq!(effects, 1);
}

#[tokio::test(start_paused = true)]
async fn an_executor_that_does_not_keep_its_limit_is_dropped() {
    let (story, effects) =
        story(World::new(Effect::ReadOnly, ScriptedTool::new([Act::Deaf]))).await;
    expect!["obs 3 timed_out: The tool did not end within 3000 ms and was killed, as did 3 attempts in all. The limit is `timeout_ms` in its tool file."]
        .assert_eq(&story);
    assert_eq!(effects, 3);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_ended_well_while_the_process_stood_still_is_believed() {
    let tool = ScriptedTool::new([Act::Belated(4_200)]);
    let (story, effects) = story(World::new(Effect::Irreversible, tool)).await;
    expect![[r"
        start 1 by w1
        obs 1 ok: done"]]
    .assert_eq(&story);
    assert_eq!(effects, 1);
}

#[tokio::test(start_paused = true)]
async fn an_irreversible_tool_is_made_ready_again_before_its_start_is_recorded() {
    let retryable = Act::Refused { retryable: true };
    let tool = ScriptedTool::new([retryable.clone(), retryable, Act::Say("restarted")]);
    let (story, effects) = story(World::new(Effect::Irreversible, tool)).await;
    expect![[r"
        start 1 by w1
        obs 1 ok: restarted"]]
    .assert_eq(&story);
    assert_eq!(effects, 1);
}

#[tokio::test(start_paused = true)]
async fn an_irreversible_tool_that_did_not_begin_is_tried_again_under_its_start() {
    let tool = ScriptedTool::new([Act::NotBegun, Act::NotBegun, Act::Say("restarted")]);
    let (story, effects) = story(World::new(Effect::Irreversible, tool)).await;
    expect![[r"
        start 1 by w1
        obs 1 ok: restarted"]]
    .assert_eq(&story);
    assert_eq!(effects, 1);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_cannot_be_made_ready_is_barred_before_that_is_said() {
    let tool = ScriptedTool::new([Act::Refused { retryable: false }]);
    let (story, _) = story(World::new(Effect::Irreversible, tool)).await;
    expect![[r"
        bar by w1
        obs 0 tool_not_started NeverStarted: The tool could not be started, nothing happened: refused"]]
    .assert_eq(&story);
}

#[tokio::test(start_paused = true)]
async fn a_checkable_tool_whose_effect_is_missing_starts_again() {
    let tool = ScriptedTool::new([Act::Crash, Act::Say("restarted")]);
    let world = World::new(Effect::Checkable, tool).with_probe(ScriptedTool::new([Act::Fail]));
    let (story, effects) = story(world).await;
    expect![[r"
        start 1 by w1
        start 2 by w1
        obs 2 ok: restarted"]]
    .assert_eq(&story);
    assert_eq!(effects, 2);
}

#[tokio::test(start_paused = true)]
async fn a_checkable_tool_whose_effect_is_found_is_answered() {
    let tool = ScriptedTool::new([Act::Crash]);
    let world =
        World::new(Effect::Checkable, tool).with_probe(ScriptedTool::new([Act::Say("active")]));
    let (story, effects) = story(world).await;
    expect![[r"
        start 1 by w1
        obs 1 ok Completed: half"]]
    .assert_eq(&story);
    assert_eq!(effects, 1);
}

#[tokio::test(start_paused = true)]
async fn a_checkable_tool_that_nobody_can_check_is_in_doubt() {
    let world = World::new(Effect::Checkable, ScriptedTool::new([Act::Crash]))
        .with_probe(ScriptedTool::new([Act::Crash]));
    let (story, effects) = story(world).await;
    expect![[r"
        start 1 by w1
        obs 1 in_doubt Unknown: half"]]
    .assert_eq(&story);
    assert_eq!(effects, 1);
}

#[tokio::test(start_paused = true)]
async fn without_working_memory_calls_run_all_the_same() {
    let down = Plan::none().always("w1", OpKind::Recall, Fault::Unavailable).always(
        "w1",
        OpKind::Remember,
        Fault::Unavailable,
    );
    for effect in [Effect::ReadOnly, Effect::Idempotent, Effect::Irreversible] {
        let world = World::with(effect, ScriptedTool::new([Act::Say("done")]), &down);
        let (story, effects) = story(world).await;
        assert!(story.ends_with("obs 1 ok: done"), "{story}");
        assert_eq!(effects, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_to_a_start_makes_one_effect() {
    for landing in [Landing::Never, Landing::Now, Landing::After(Duration::from_millis(50))] {
        let plan = Plan::none().on_start("w1", Fault::LoseAnswer(landing));
        let tool = ScriptedTool::new([Act::Say("restarted")]);
        let world = World::with(Effect::Irreversible, tool, &plan);
        let (story, effects) = story(world).await;
        assert_eq!(story, "start 1 by w1\nobs 1 ok: restarted", "{landing:?}");
        assert_eq!(effects, 1);
        assert_eq!(plan.fired(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_to_an_observation_makes_one_observation() {
    for landing in [Landing::Never, Landing::Now] {
        let plan = Plan::none().on_observation("w1", Fault::LoseAnswer(landing));
        let world = World::with(Effect::Irreversible, ScriptedTool::new([Act::Say("done")]), &plan);
        let (story, effects) = story(world).await;
        assert_eq!(story, "start 1 by w1\nobs 1 ok: done", "{landing:?}");
        assert_eq!(effects, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_start_whose_answer_comes_too_late_is_not_used() {
    let plan = Plan::none().on_start("w1", Fault::DelayAnswer(Duration::from_secs(4)));
    let tool = ScriptedTool::new([Act::Say("restarted")]);
    let (story, effects) = story(World::with(Effect::Irreversible, tool, &plan)).await;
    expect![[r"
        start 1 by w1
        obs 1 unavailable StoppedBeforeEffect: The worker could not begin in time after it had claimed the call. Nothing happened."]]
    .assert_eq(&story);
    assert_eq!(effects, 0);
}

#[tokio::test(start_paused = true)]
async fn a_start_that_nobody_ever_answers_is_known_to_be_unused() {
    let plan = Plan::none().on_starts("w1", Fault::LoseAnswer(Landing::Now));
    let tool = ScriptedTool::new([Act::Say("restarted")]);
    let (story, effects) = story(World::with(Effect::Irreversible, tool, &plan)).await;
    expect![[r"
        start 1 by w1
        obs 0 unavailable StoppedBeforeEffect: The worker could not begin in time after it had claimed the call. Nothing happened."]]
    .assert_eq(&story);
    assert_eq!(effects, 0);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_is_ready_too_late_does_not_start() {
    let mut world = World::new(Effect::Irreversible, ScriptedTool::new([Act::SlowReady(2)]));
    let mut call = world.call("a");
    call.start_by = world.now().after(Duration::from_secs(1));
    world.append(world.tool_leaf(), Record::ToolCall(call), Fence::None).await;
    let _worker = world.worker();
    world.until_acked().await;
    expect![[r"
        bar by w1
        obs 0 unavailable NeverStarted: No worker was free to start the call in time. The call never started and nothing happened."]]
    .assert_eq(&world.story());
    assert_eq!(world.tool.effects().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_bar_that_is_first_keeps_the_call_from_starting() {
    let plan = Plan::none().on_start("w1", Fault::Delay(Duration::from_secs(1)));
    let tool = ScriptedTool::new([Act::Say("restarted")]);
    let mut world = World::with(Effect::Irreversible, tool, &plan);
    world.dispatch("a").await;
    let _worker = world.worker();
    world.until("the start on its way", |_| plan.fired() == 1).await;
    assert!(world.bar("a").await);
    world.until_acked().await;
    expect!["bar by planner"].assert_eq(&world.story());
    assert_eq!(world.tool.effects().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_bar_that_comes_second_loses() {
    let mut world = World::new(Effect::Irreversible, ScriptedTool::new([Act::Hang]));
    world.dispatch("a").await;
    let _worker = world.worker();
    world.until_effect().await;
    assert!(!world.bar("a").await);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_keeps_failing_is_not_tried_until_a_probe_works() {
    let tool = ScriptedTool::new(std::iter::repeat_n(Act::Fail, 12).chain([Act::Say("active")]));
    let mut world = World::new(Effect::ReadOnly, tool);
    let _worker = world.worker();
    for name in ["a", "b", "c", "d"] {
        world.dispatch(name).await;
        world.until_acked().await;
    }
    world.dispatch("e").await;
    world.until_acked().await;
    let codes =
        |world: &World| -> Vec<_> { world.observations().iter().map(|seen| seen.code).collect() };
    let failed = Some(ErrorCode::ToolFailed);
    assert_eq!(codes(&world), [failed, failed, failed, failed, Some(ErrorCode::Unavailable)]);
    assert_eq!(world.tool.effects().len(), 12);
    tokio::time::sleep(tool_core::breaker::REST).await;
    world.dispatch("f").await;
    world.until_acked().await;
    world.dispatch("g").await;
    world.until_acked().await;
    assert_eq!(codes(&world)[5..], [None, None]);
}

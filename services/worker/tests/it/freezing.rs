//! What operators froze does not begin.

use std::time::Duration;

use expect_test::expect;
use ports::freezes::{Freezes as _, LAG};
use proto::freeze::{Freeze, FreezeTarget};
use proto::time::Timestamp;
use proto::tool::Effect;
use testkit::memory::faults::{Fault, OpKind};

use crate::plan::Plan;
use crate::tool::{Act, ScriptedTool};
use crate::world::World;

async fn freeze(world: &World, target: FreezeTarget) {
    let (reason, by) = ("incident 7".to_owned(), "ann".to_owned());
    world.planner().freeze(Freeze { target, reason, by, at: Timestamp(0) }).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_frozen_call_is_barred_and_answered_with_the_reason() {
    let mut world = World::new(Effect::Irreversible, ScriptedTool::new([Act::Say("done")]));
    freeze(&world, FreezeTarget::All).await;
    world.dispatch("a").await;
    let _worker = world.worker();
    world.until_acked().await;
    let story = world.story();
    assert!(story.starts_with("bar by w1\nobs 0 frozen NeverStarted: "), "{story}");
    assert!(story.ends_with("Frozen is every irreversible tool: incident 7."), "{story}");
    assert_eq!(world.tool.prepared(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_may_be_repeated_is_held_back_by_its_name_alone() {
    let mut world =
        World::new(Effect::ReadOnly, ScriptedTool::new([Act::Say("up"), Act::Say("up")]));
    freeze(&world, FreezeTarget::All).await;
    world.dispatch("a").await;
    let _worker = world.worker();
    world.until_acked().await;
    freeze(&world, FreezeTarget::Tool(world.contract.name.clone())).await;
    world.dispatch("b").await;
    world.until("both answers", |world| world.observations().len() == 2).await;
    assert_eq!(world.tool.effects(), [("key-a".to_owned(), 1)], "{}", world.story());
}

/// Asking for each call that may be repeated would cost a message each; whoever freezes waits this
/// long before it is said to hold. What must not happen twice is asked for anew each time.
#[tokio::test(start_paused = true)]
async fn a_list_that_is_a_little_old_serves_what_may_be_repeated_and_nothing_else() {
    for (effect, ran) in [(Effect::Idempotent, 2), (Effect::Irreversible, 1)] {
        let tool = ScriptedTool::new([Act::Say("1"), Act::Say("2"), Act::Say("3")]);
        let mut world = World::new(effect, tool);
        world.freeze_lag = LAG;
        world.dispatch("a").await;
        let _worker = world.worker();
        world.until_acked().await;
        freeze(&world, FreezeTarget::Tool(world.contract.name.clone())).await;
        world.dispatch("b").await;
        world.until("an answer", |world| world.observations().len() == 2).await;
        assert_eq!(world.tool.effects().len(), ran, "{}", world.story());
        tokio::time::sleep(LAG).await;
        world.dispatch("c").await;
        world.until("an answer", |world| world.observations().len() == 3).await;
        assert_eq!(world.tool.effects().len(), ran, "{}", world.story());
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_frozen_between_start_and_effect_has_none() {
    let plan = Plan::none().on_start("w1", Fault::DelayAnswer(Duration::from_secs(1)));
    let tool = ScriptedTool::new([Act::Say("done")]);
    let mut world = World::with(Effect::Irreversible, tool, &plan);
    world.dispatch("a").await;
    let _worker = world.worker();
    world.until("the start", |_| plan.fired() == 1).await;
    freeze(&world, FreezeTarget::All).await;
    world.until_acked().await;
    expect![[r"
        start 1 by w1
        obs 1 frozen StoppedBeforeEffect: An operator has frozen this tool. The call was claimed, but it never began and nothing happened. Do not call it again in this run; go on without it, or say that it has to wait. Frozen is every irreversible tool: incident 7."]]
    .assert_eq(&world.story());
    assert_eq!(world.tool.effects().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn nothing_begins_while_nobody_can_tell_what_is_frozen() {
    let plan = Plan::none().first("w1", OpKind::Freeze, Fault::Unavailable);
    let tool = ScriptedTool::new([Act::Say("done")]);
    let mut world = World::with(Effect::Irreversible, tool, &plan);
    world.dispatch("a").await;
    let _worker = world.worker();
    world.until("the question", |_| plan.fired() == 1).await;
    assert_eq!(world.tool.effects().len(), 0);
    world.until_acked().await;
    expect![[r"
        start 1 by w1
        obs 1 ok: done"]]
    .assert_eq(&world.story());
}

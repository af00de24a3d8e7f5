//! Shutdown in each state.

use std::time::Duration;

use expect_test::expect;
use ports::registry::Registry as _;
use proto::tool::Effect;
use tokio::time::Instant;

use crate::tool::{Act, ScriptedTool};
use crate::world::{Running, World, instance};

async fn stopped(running: &mut Running) {
    assert!(running.tasks.finish(Duration::from_mins(1)).await, "the worker did not stop");
}

#[tokio::test(start_paused = true)]
async fn an_idle_worker_offers_its_tools_and_takes_the_offer_back_when_it_stops() {
    let mut world = World::new(Effect::ReadOnly, ScriptedTool::new([Act::Say("done")]));
    let mut worker = world.worker();
    tokio::time::sleep(Duration::from_mins(2)).await;
    let offers = world.planner().registrations().await.unwrap();
    assert_eq!(offers.len(), 1);
    assert_eq!(offers[0].tools, [world.contract.clone()]);
    worker.shutdown.drain();
    stopped(&mut worker).await;
    assert_eq!(world.planner().registrations().await.unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn a_draining_worker_ends_what_runs_and_takes_nothing_new() {
    let mut world = World::new(Effect::Irreversible, ScriptedTool::new([Act::Say("done")]));
    world.dispatch("a").await;
    let mut worker = world.worker();
    world.until_effect().await;
    worker.shutdown.drain();
    world.dispatch("b").await;
    stopped(&mut worker).await;
    expect![[r"
        start 1 by w1
        obs 1 ok: done"]]
    .assert_eq(&world.story());
    let _second = world.worker();
    world.until_acked().await;
    assert_eq!(world.tool.effects().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_outlasts_the_grace_is_given_back() {
    let mut world =
        World::new(Effect::Idempotent, ScriptedTool::new([Act::Deaf, Act::Say("done")]));
    world.contract.timeout_ms = 40_000;
    world.dispatch("a").await;
    let mut first = world.worker();
    world.until_effect().await;
    let asked = Instant::now();
    first.shutdown.drain();
    stopped(&mut first).await;
    assert_eq!(asked.elapsed(), Duration::from_secs(5));
    let _second = world.worker();
    world.until_acked().await;
    expect!["obs 1 ok: done"].assert_eq(&world.story());
}

#[tokio::test(start_paused = true)]
async fn a_call_between_two_attempts_is_given_back_at_once() {
    let mut world = World::new(Effect::ReadOnly, ScriptedTool::new([Act::Fail, Act::Say("done")]));
    world.contract.retry.backoff_ms = 20_000;
    world.dispatch("a").await;
    let mut first = world.worker();
    world.until_effect().await;
    let asked = Instant::now();
    first.shutdown.drain();
    stopped(&mut first).await;
    assert!(asked.elapsed() < Duration::from_secs(1));
    let _second = world.worker();
    world.until_acked().await;
    expect!["obs 1 ok: done"].assert_eq(&world.story());
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_is_told_to_abandon_stops_at_once() {
    let mut world = World::new(Effect::Irreversible, ScriptedTool::new([Act::Deaf]));
    world.dispatch("a").await;
    let mut first = world.worker();
    world.until_effect().await;
    let asked = Instant::now();
    first.shutdown.abandon();
    stopped(&mut first).await;
    assert!(asked.elapsed() < Duration::from_secs(1));
    let _second = world.worker();
    world.until_acked().await;
    assert_eq!(world.tool.effects().len(), 1);
    assert!(world.story().starts_with("start 1 by w1\nobs 0 in_doubt Unknown"));
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_cannot_reach_the_bus_still_stops() {
    let mut world = World::new(Effect::ReadOnly, ScriptedTool::new([Act::Say("done")]));
    world.bus.cut_off(&instance("w1"), Duration::from_mins(5));
    let mut worker = world.worker();
    tokio::time::sleep(Duration::from_secs(10)).await;
    worker.shutdown.drain();
    stopped(&mut worker).await;
}

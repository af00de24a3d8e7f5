//! Tools that change while their worker runs, as those of an MCP server may.

use std::sync::Arc;

use ports::registry::Registry as _;
use proto::hash::fingerprint;
use proto::tool::{Effect, ToolContract};
use tokio::time::{Duration, sleep};
use worker::Tool;

use crate::tool::{Act, ScriptedTool};
use crate::world::World;

async fn offered(world: &World) -> Vec<ToolContract> {
    let offers = world.planner().registrations().await.unwrap();
    offers.into_iter().flat_map(|offer| offer.tools).collect()
}

/// Waits until the offer is as it should be.
async fn until_offered(world: &World, is_so: impl Fn(&[ToolContract]) -> bool) {
    for _ in 0..1000 {
        if is_so(&offered(world).await) {
            return;
        }
        sleep(Duration::from_millis(1)).await;
    }
    panic!("it is never offered so: {:?}", offered(world).await);
}

#[tokio::test(start_paused = true)]
async fn a_changed_tool_is_offered_anew_and_calls_of_the_old_one_are_refused() {
    let tool = ScriptedTool::new([Act::Say("old"), Act::Say("new")]);
    let mut world = World::new(Effect::ReadOnly, tool);
    let running = world.worker();
    world.dispatch("a").await;
    world.until_acked().await;
    let changed = ToolContract { fingerprint: fingerprint("v2"), ..world.contract.clone() };
    running.tools.add(Tool::new(changed, Arc::new(world.tool.clone()), None).unwrap());
    let is_new = |tools: &[ToolContract]| {
        tools.iter().map(|tool| &tool.fingerprint).eq([&fingerprint("v2")])
    };
    until_offered(&world, is_new).await;
    world.dispatch("b").await;
    world.until("both answers", |world| world.observations().len() == 2).await;
    let story = world.story();
    let lines: Vec<&str> = story.lines().collect();
    assert_eq!(lines[0], "obs 1 ok: old");
    assert!(lines[1].starts_with("obs 0 version_mismatch"), "{story}");
    assert_eq!(world.tool.effects().len(), 1, "it never ran for the old promise");
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_is_withdrawn_is_offered_no_more_and_may_come_back() {
    let mut world = World::new(Effect::ReadOnly, ScriptedTool::new([]));
    let running = world.worker();
    until_offered(&world, |tools| tools.len() == 1).await;
    running.tools.withdraw(&world.contract.name);
    until_offered(&world, <[ToolContract]>::is_empty).await;
    let again = Tool::new(world.contract.clone(), Arc::new(world.tool.clone()), None).unwrap();
    running.tools.add(again);
    until_offered(&world, |tools| tools.len() == 1).await;
}

//! Calls share reads, places and resources.

use std::collections::BTreeMap;
use std::time::Duration;

use definitions::policy::{Concurrency, Policy, Rate, Resource};
use expect_test::expect;
use proto::error_code::ErrorCode;
use proto::tool::Effect;
use testkit::memory::faults::{Fault, OpKind};
use tokio::time::{Instant, sleep};

use crate::plan::Plan;
use crate::tool::{Act, ScriptedTool};
use crate::world::{World, call_id};

fn cached(ms: u64) -> Policy {
    Policy { cache_ttl_ms: ms, ..Policy::default() }
}

#[tokio::test(start_paused = true)]
async fn five_hundred_threads_that_ask_the_same_at_once_cause_one_execution() {
    let mut world = World::new(Effect::ReadOnly, ScriptedTool::new([Act::Slow(2)]));
    world.policy = cached(1_000);
    let _workers = (world.worker(), world.worker());
    for thread in 0..500 {
        world.dispatch_in(thread, "acme", &format!("c{thread}")).await;
    }
    world.until("all answers", |world| world.observations().len() == 500).await;
    assert_eq!(world.tool.effects().len(), 1);
    let seen = world.observations();
    let own: Vec<_> =
        seen.iter().filter(|one| one.stamp.as_ref().unwrap().from.is_none()).collect();
    assert_eq!(own.len(), 1);
    let executed = &own[0].tool_call_id;
    for one in &seen {
        assert_eq!((one.code, one.content.as_str()), (None, "done"));
        let from = one.stamp.as_ref().unwrap().from.as_ref();
        assert!(from.is_none_or(|from| from.tool_call_id == *executed && !from.stale));
    }
}

#[tokio::test(start_paused = true)]
async fn the_rest_get_an_answer_when_the_executing_worker_is_killed() {
    let mut world = World::new(Effect::ReadOnly, ScriptedTool::new([Act::Hang, Act::Say("fresh")]));
    world.contract.timeout_ms = 60_000;
    world.policy = cached(1_000);
    let first = world.worker();
    for thread in 0..50 {
        world.dispatch_in(thread, "acme", &format!("c{thread}")).await;
    }
    world.until_effect().await;
    let _second = world.worker();
    let (died, before) = (Instant::now(), world.tool.effects().len());
    drop(first);
    world.until("all answers", |world| world.observations().len() == 50).await;
    assert_eq!((before, world.tool.effects().len()), (1, 2));
    assert!(world.observations().iter().all(|one| one.content == "fresh"));
    assert!(died.elapsed() < Duration::from_secs(40), "{:?}", died.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_result_of_another_tenant_or_of_longer_ago_is_not_used() {
    let mut world = World::new(Effect::ReadOnly, ScriptedTool::new([Act::Say("up")]));
    world.policy = cached(5_000);
    let _worker = world.worker();
    for (thread, tenant, wait, executions) in [
        (1, "acme", 0, 1),
        (2, "acme", 3, 1),
        (3, "other", 0, 2),
        (4, "acme", 3, 3),
        (5, "acme", 0, 3),
    ] {
        sleep(Duration::from_secs(wait)).await;
        world.dispatch_in(thread, tenant, &format!("c{thread}")).await;
        let answers = usize::try_from(thread).unwrap();
        world.until("an answer", |world| world.observations().len() == answers).await;
        assert_eq!(world.tool.effects().len(), executions, "call {thread}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_nobody_elses_and_without_a_cache_nothing_is_shared() {
    let tool = ScriptedTool::new([Act::Crash, Act::Crash, Act::Crash, Act::Say("up")]);
    let mut world = World::new(Effect::ReadOnly, tool);
    world.policy = cached(60_000);
    let _worker = world.worker();
    world.dispatch_in(1, "acme", "c1").await;
    world.until("a failure", |world| world.observations().len() == 1).await;
    world.dispatch_in(2, "acme", "c2").await;
    world.until("an answer", |world| world.observations().len() == 2).await;
    let codes: Vec<_> = world.observations().iter().map(|one| one.code).collect();
    assert_eq!(codes, [Some(ErrorCode::ToolCrashed), None]);

    let mut plain = World::new(Effect::ReadOnly, ScriptedTool::new([Act::Slow(1)]));
    let _worker = plain.worker();
    for thread in 0..3 {
        plain.dispatch_in(thread, "acme", &format!("c{thread}")).await;
    }
    plain.until("all answers", |world| world.observations().len() == 3).await;
    assert_eq!(plain.tool.effects().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn without_working_memory_each_call_executes_for_itself() {
    let plan = Plan::none().always("w1", OpKind::Remember, Fault::Unavailable).always(
        "w1",
        OpKind::Recall,
        Fault::Unavailable,
    );
    let mut world = World::with(Effect::ReadOnly, ScriptedTool::new([Act::Say("up")]), &plan);
    world.policy = cached(60_000);
    let _worker = world.worker();
    for thread in 0..3 {
        world.dispatch_in(thread, "acme", &format!("c{thread}")).await;
    }
    world.until("all answers", |world| world.observations().len() == 3).await;
    assert_eq!(world.tool.effects().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn an_older_result_stands_in_for_a_failure_and_says_so() {
    let mut world = World::new(Effect::ReadOnly, ScriptedTool::new([Act::Say("old"), Act::Crash]));
    world.policy = Policy { stale_ms: 3_600_000, ..cached(1) };
    let _worker = world.worker();
    world.dispatch_in(1, "acme", "c1").await;
    world.until("an answer", |world| world.observations().len() == 1).await;
    sleep(Duration::from_mins(1)).await;
    world.dispatch_in(2, "acme", "c2").await;
    world.until("a second answer", |world| world.observations().len() == 2).await;
    let older = world.observations().pop().unwrap();
    assert_eq!(older.code, None);
    assert!(
        older.content.starts_with("[Stale: the call failed (tool_crashed); this is the result")
    );
    assert!(older.content.ends_with("\nold"), "{}", older.content);
    assert!(older.stamp.unwrap().from.unwrap().stale);
    // Too old in the end.
    sleep(Duration::from_hours(2)).await;
    world.dispatch_in(3, "acme", "c3").await;
    world.until("a failure", |world| world.observations().len() == 3).await;
    assert_eq!(world.observations().pop().unwrap().code, Some(ErrorCode::ToolCrashed));
}

#[tokio::test(start_paused = true)]
async fn another_way_is_tried_before_an_error_and_the_result_says_which() {
    let mut world = World::new(Effect::ReadOnly, ScriptedTool::new([Act::Crash]));
    world.fallbacks = vec![
        ScriptedTool::new([Act::Refused { retryable: false }]),
        ScriptedTool::new([Act::Say("b")]),
    ];
    let _worker = world.worker();
    world.dispatch("a").await;
    world.until_acked().await;
    let seen = world.observations().pop().unwrap();
    assert_eq!((seen.code, seen.content.as_str(), seen.attempt), (None, "b", 5));
    assert_eq!(seen.stamp.unwrap().fallback, 2);
}

#[tokio::test(start_paused = true)]
async fn an_irreversible_tool_goes_another_way_only_when_nothing_began() {
    let unready = ScriptedTool::new([Act::Refused { retryable: false }]);
    let mut world = World::new(Effect::Irreversible, unready);
    world.fallbacks = vec![ScriptedTool::new([Act::Say("b")])];
    let _worker = world.worker();
    world.dispatch("a").await;
    world.until_acked().await;
    expect![[r"
        start 1 by w1
        obs 1 ok: b"]]
    .assert_eq(&world.story());

    let mut world = World::new(Effect::Irreversible, ScriptedTool::new([Act::Crash]));
    world.fallbacks = vec![ScriptedTool::new([Act::Say("b")])];
    let _worker = world.worker();
    world.dispatch("a").await;
    world.until_acked().await;
    assert_eq!(world.observations()[0].code, Some(ErrorCode::InDoubt));
    assert_eq!(world.fallbacks[0].effects(), []);
}

fn held(cool_down_ms: u64, rate: Option<Rate>) -> Policy {
    let name = "service/{service}".to_owned();
    Policy { resource: Some(Resource { name, cool_down_ms, rate }), ..Policy::default() }
}

#[tokio::test(start_paused = true)]
async fn a_resource_is_changed_by_one_call_at_a_time_on_all_workers() {
    for effect in [Effect::Idempotent, Effect::Irreversible] {
        let mut world = World::new(effect, ScriptedTool::new([Act::Slow(1)]));
        world.policy = held(0, None);
        let _workers = (world.worker(), world.worker(), world.worker());
        for thread in 0..5 {
            world.dispatch_in(thread, ["acme", "other"][usize::from(thread > 2)], "a").await;
        }
        world.until("all answers", |world| world.observations().len() == 5).await;
        assert_eq!(world.tool.most_at_once(), 1, "{effect:?}");
        assert!(world.observations().iter().all(proto::observation::Observation::is_ok));
    }
}

#[tokio::test(start_paused = true)]
async fn working_memory_that_is_lost_lets_no_second_mutation_begin() {
    let mut world = World::new(Effect::Idempotent, ScriptedTool::new([Act::Slow(2)]));
    world.policy = held(0, None);
    let _workers = (world.worker(), world.worker());
    for thread in 0..4 {
        world.dispatch_in(thread, "acme", &format!("c{thread}")).await;
    }
    for _ in 0..8 {
        sleep(Duration::from_secs(1)).await;
        world.bus.working_memory().forget_all();
    }
    world.until("all answers", |world| world.observations().len() == 4).await;
    assert_eq!(world.tool.most_at_once(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_cannot_wait_is_told_who_holds_the_resource() {
    let mut world = World::new(Effect::Irreversible, ScriptedTool::new([Act::Slow(100)]));
    world.contract.timeout_ms = 120_000;
    world.policy = held(0, None);
    let _worker = world.worker();
    let place = world.dispatch_in(1, "acme", "a").await;
    world.until_effect().await;
    world.dispatch_in(2, "acme", "b").await;
    world.until("a conflict", |world| world.observations().len() == 1).await;
    let seen = world.observations().pop().unwrap();
    assert_eq!(seen.code, Some(ErrorCode::Conflict));
    let who = format!("held by restart, call {} of thread {}", call_id("a"), place.thread);
    assert!(seen.content.contains(&who), "{}", seen.content);
    assert_eq!(world.tool.effects().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_resource_rests_and_keeps_to_its_rate() {
    let mut world = World::new(Effect::Irreversible, ScriptedTool::new([Act::Say("up")]));
    world.policy = held(5_000, Some(Rate { most: 2, per_ms: 600_000 }));
    let _worker = world.worker();
    let began = Instant::now();
    for (thread, name) in [(1, "a"), (2, "b"), (3, "c")] {
        world.dispatch_in(thread, "acme", name).await;
    }
    world.until("all answers", |world| world.observations().len() == 3).await;
    let seen: BTreeMap<_, _> =
        world.observations().into_iter().map(|one| (one.code, one)).collect();
    assert_eq!(world.tool.effects().len(), 2);
    let refused = &seen[&Some(ErrorCode::Conflict)].content;
    assert!(refused.contains("at most 2 in 600 s"), "{refused}");
    assert!(began.elapsed() >= Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_dies_holds_its_resource_until_its_call_is_over() {
    let mut world =
        World::new(Effect::Irreversible, ScriptedTool::new([Act::Hang, Act::Say("up")]));
    world.policy = held(0, None);
    let first = world.worker();
    world.dispatch_in(1, "acme", "a").await;
    world.until_effect().await;
    drop(first);
    let _second = world.worker();
    world.dispatch_in(2, "acme", "b").await;
    world.until("both answers", |world| world.observations().len() == 2).await;
    expect![[r"
        service/web held by 00000000a
        start 1 by w1
        obs 0 in_doubt Unknown: IN DOUBT: attempt 1 began on host host (worker w1) at 2026-01-01T00:00:00Z and left no result. Its effect may have happened. It could land until 2026-01-01T00:00:08Z. Check the real state before you repeat the call.
        service/web free
        service/web held by 00000000b
        start 1 by w2
        obs 1 ok: up
        service/web free"]].assert_eq(&world.story());
}

#[tokio::test(start_paused = true)]
async fn so_many_calls_run_at_once_and_no_more() {
    for concurrency in [
        Concurrency { per_worker: Some(2), fleet: None },
        Concurrency { per_worker: None, fleet: Some(2) },
    ] {
        let mut world = World::new(Effect::Idempotent, ScriptedTool::new([Act::Slow(1)]));
        world.policy = Policy { concurrency, ..Policy::default() };
        let _workers = (world.worker(), concurrency.fleet.map(|_| world.worker()));
        for thread in 0..8 {
            world.dispatch_in(thread, "acme", &format!("c{thread}")).await;
        }
        world.until("all answers", |world| world.observations().len() == 8).await;
        assert_eq!(world.tool.most_at_once(), 2, "{concurrency:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_finds_no_place_in_time_says_what_is_used_up() {
    let mut world = World::new(Effect::Idempotent, ScriptedTool::new([Act::Slow(100)]));
    world.contract.timeout_ms = 120_000;
    world.policy.concurrency.fleet = Some(1);
    let _worker = world.worker();
    world.dispatch_in(1, "acme", "a").await;
    world.until_effect().await;
    world.dispatch_in(2, "acme", "b").await;
    world.until("an answer", |world| world.observations().len() == 1).await;
    let seen = world.observations().pop().unwrap();
    assert_eq!(seen.code, Some(ErrorCode::Exhausted));
    assert!(seen.content.contains("All 1 places of restart on all workers are taken."));
}

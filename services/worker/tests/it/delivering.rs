//! Deliveries: plain, doubled, late, reordered, poisoned.

use std::time::Duration;

use expect_test::expect;
use ports::journal::Fence;
use proto::call::Terms;
use proto::fact::Fact;
use proto::hash::fingerprint;
use proto::record::Record;
use proto::subject::Leaf;
use proto::time::Timestamp;
use proto::tool::Effect;
use testkit::memory::faults::{Fault, OpKind};
use tokio::time::sleep;

use crate::plan::Plan;
use crate::tool::{Act, ScriptedTool};
use crate::world::{World, instance};

#[tokio::test(start_paused = true)]
async fn a_reading_call_is_run_reported_and_acknowledged() {
    let mut world = World::new(Effect::ReadOnly, ScriptedTool::new([Act::Say("active")]));
    world.dispatch("a").await;
    let _worker = world.worker();
    world.until_acked().await;
    expect!["obs 1 ok: active"].assert_eq(&world.story());
    assert_eq!(world.tool.effects(), [("key-a".to_owned(), 1)]);
}

#[tokio::test(start_paused = true)]
async fn an_irreversible_call_starts_by_a_record() {
    let mut world = World::new(Effect::Irreversible, ScriptedTool::new([Act::Say("restarted")]));
    world.dispatch("a").await;
    let _worker = world.worker();
    world.until_acked().await;
    expect![[r"
        start 1 by w1
        obs 1 ok: restarted"]]
    .assert_eq(&world.story());
}

#[tokio::test(start_paused = true)]
async fn a_delivery_that_comes_twice_has_one_effect() {
    let twice = Plan::none().first("w1", OpKind::Pull, Fault::DeliverTwice);
    let tool = ScriptedTool::new([Act::Say("restarted")]);
    let mut world = World::with(Effect::Irreversible, tool, &twice);
    world.dispatch("a").await;
    let _worker = world.worker();
    world.until_acked().await;
    assert_eq!(world.tool.effects().len(), 1);
    assert_eq!(world.observations().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn two_workers_that_hold_the_same_delivery_make_one_effect() {
    let both = Plan::none().first("w1", OpKind::Pull, Fault::DeliverTwice).always(
        "w2",
        OpKind::Pull,
        Fault::DeliverTwice,
    );
    for effect in [Effect::ReadOnly, Effect::Irreversible] {
        let mut world = World::with(effect, ScriptedTool::new([Act::Say("done")]), &both);
        world.dispatch("a").await;
        let _first = world.worker();
        let _second = world.worker();
        world.until_acked().await;
        assert_eq!(world.tool.effects().len(), 1);
        assert_eq!(world.observations().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn reordered_deliveries_are_all_answered() {
    let newest_first = Plan::none().always("w1", OpKind::Pull, Fault::NewestFirst);
    let tool = ScriptedTool::new([Act::Say("done")]);
    let mut world = World::with(Effect::Idempotent, tool, &newest_first);
    for name in ["a", "b", "c", "d", "e", "f"] {
        world.dispatch(name).await;
    }
    let _worker = world.worker();
    world.until_acked().await;
    let mut effects = world.tool.effects();
    effects.sort();
    let expected = ["key-a", "key-b", "key-c", "key-d", "key-e", "key-f"];
    assert_eq!(effects, expected.map(|key| (key.to_owned(), 1)));
}

#[tokio::test(start_paused = true)]
async fn a_late_call_is_refused_and_a_late_irreversible_one_barred() {
    for (effect, expected) in [
        (
            Effect::ReadOnly,
            expect![
                "obs 0 unavailable NeverStarted: No worker was free to start the call in time. The call never started and nothing happened."
            ],
        ),
        (
            Effect::Irreversible,
            expect![[r"
                bar by w1
                obs 0 unavailable NeverStarted: No worker was free to start the call in time. The call never started and nothing happened."]],
        ),
    ] {
        let mut world = World::new(effect, ScriptedTool::new([Act::Say("done")]));
        world.dispatch("a").await;
        sleep(Duration::from_secs(61)).await;
        let _worker = world.worker();
        world.until_acked().await;
        expected.assert_eq(&world.story());
        assert_eq!(world.tool.prepared(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_replay_of_history_repeats_nothing() {
    for effect in [Effect::ReadOnly, Effect::Checkable, Effect::Irreversible] {
        let mut world = World::new(effect, ScriptedTool::new([Act::Say("done")]));
        world.dispatch("a").await;
        let _worker = world.worker();
        world.until_acked().await;
        let story = world.story();
        world.bus.working_memory().forget_all();
        sleep(Duration::from_mins(5)).await;
        for queue in world.bus.queues() {
            world.bus.replay(&queue);
        }
        world.until_acked().await;
        assert_eq!(world.story(), story);
        assert_eq!(world.tool.effects().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn forgotten_acks_repeat_no_effect() {
    let mut world = World::new(Effect::Irreversible, ScriptedTool::new([Act::Say("done")]));
    world.dispatch("a").await;
    let _worker = world.worker();
    world.until_acked().await;
    assert_eq!(world.bus.forget_acks(Duration::from_secs(10)), 1);
    world.until_acked().await;
    assert_eq!(world.tool.effects().len(), 1);
    assert_eq!(world.observations().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_late_call_that_its_planner_closed_is_dropped() {
    let mut world = World::new(Effect::ReadOnly, ScriptedTool::new([Act::Say("done")]));
    world.dispatch("a").await;
    sleep(Duration::from_secs(61)).await;
    world.close("a").await;
    let _worker = world.worker();
    world.until_acked().await;
    expect![""].assert_eq(&world.story());
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_record_rests_until_a_planner_parks_it() {
    let mut world = World::new(Effect::ReadOnly, ScriptedTool::new([Act::Say("done")]));
    let leaf = world.tool_leaf();
    let poison = world.append_bytes(leaf, "{".into(), Fence::None).await.unwrap();
    world.dispatch("a").await;
    let _worker = world.worker();
    world.until("the sound call", |world| world.observations().len() == 1).await;
    assert!(world.has_open_calls());
    let parked = Fact::Parked { sequence: poison, why: "not JSON".into() };
    world.append(Leaf::Fact, Record::Fact(parked), Fence::None).await;
    world.until_acked().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_from_a_newer_planner_is_given_back_untouched() {
    let mut world = World::new(Effect::ReadOnly, ScriptedTool::new([Act::Say("done")]));
    let leaf = world.tool_leaf();
    let newer = r#"{"v": 9, "min_reader": 9, "nonce": "00000000000000ab", "body": {}}"#;
    world.append_bytes(leaf, newer.into(), Fence::None).await.unwrap();
    world.dispatch("a").await;
    let _worker = world.worker();
    world.until("the older call", |world| world.observations().len() == 1).await;
    sleep(Duration::from_mins(3)).await;
    assert!(world.has_open_calls());
    assert_eq!(world.tool.prepared(), 1);
}

#[tokio::test(start_paused = true)]
async fn invalid_arguments_and_other_versions_cost_no_attempt() {
    let mut world = World::new(Effect::Irreversible, ScriptedTool::new([Act::Say("done")]));
    let mut wrong = world.call("a");
    wrong.arguments.insert("service".into(), 7.into());
    wrong.arguments_hash = proto::hash::arguments_hash(&wrong.arguments);
    let mut other = world.call("b");
    other.terms = Terms { fingerprint: fingerprint("v0"), ..other.terms };
    for call in [wrong, other] {
        world.append(world.tool_leaf(), Record::ToolCall(call), Fence::None).await;
    }
    let _worker = world.worker();
    world.until_acked().await;
    let told: Vec<_> =
        world.observations().into_iter().map(|seen| (seen.code, seen.content)).collect();
    expect![[r#"
        [
            (
                Some(
                    InvalidArguments,
                ),
                "The arguments are not valid. The call never started and nothing happened.\n`service` must be a string. Fix: put it in quotes: \"7\"",
            ),
            (
                Some(
                    VersionMismatch,
                ),
                "The worker runs another version of this tool than the one the call was checked against. The call never started and nothing happened. Ask again to use the version on offer.",
            ),
        ]
    "#]]
    .assert_debug_eq(&told);
    assert_eq!(world.tool.prepared(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_large_result_is_kept_whole_beside_its_excerpt() {
    use ports::artifacts::Artifacts as _;
    let mut world = World::new(Effect::ReadOnly, ScriptedTool::new([Act::Flood(100_000)]));
    world.dispatch("a").await;
    let _worker = world.worker();
    world.until_acked().await;
    let seen = world.observations().remove(0);
    let artifact = seen.artifact.unwrap();
    let full = world.planner().get(world.thread(), &artifact.id).await.unwrap().unwrap();
    assert_eq!((artifact.bytes, full.len()), (100_000, 100_000));
    assert!(seen.content.len() < 300, "{}", seen.content);
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_minutes_off_starts_nothing_late_and_refuses_nothing_early() {
    // The worker's own clock is three minutes ahead; its calls have to be started within one.
    let mut world = World::new(Effect::Irreversible, ScriptedTool::new([Act::Say("done")]));
    world.dispatch("a").await;
    let _worker = world.worker();
    world.until_acked().await;
    let stamp = world.observations().remove(0).stamp.unwrap();
    assert!(
        stamp.started_at <= world.now() && stamp.started_at > Timestamp(world.now().0 - 10_000)
    );
}

#[tokio::test(start_paused = true)]
async fn a_long_call_stays_with_its_worker() {
    let without_leases = Plan::none().always("w1", OpKind::Remember, Fault::Unavailable).always(
        "w2",
        OpKind::Remember,
        Fault::Unavailable,
    );
    let tool = ScriptedTool::new([Act::Slow(40)]);
    let mut world = World::with(Effect::ReadOnly, tool, &without_leases);
    world.contract.timeout_ms = 60_000;
    world.dispatch("a").await;
    let _first = world.worker();
    let _second = world.worker();
    world.until_acked().await;
    assert_eq!(world.tool.effects().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_renewed_keeps_others_away_when_signs_of_life_are_lost() {
    let tool = ScriptedTool::new([Act::Slow(40)]);
    let lossy = Plan::none().always("w1", OpKind::Progress, Fault::Lose);
    let mut world = World::with(Effect::ReadOnly, tool, &lossy);
    world.contract.timeout_ms = 60_000;
    world.dispatch("a").await;
    let _first = world.worker();
    world.until_effect().await;
    let _second = world.worker();
    world.until_acked().await;
    assert_eq!(world.tool.effects().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_start_of_a_worker_that_is_only_cut_off_is_not_doubted_before_its_time() {
    let mut world = World::new(Effect::Irreversible, ScriptedTool::new([Act::Slow(10)]));
    world.contract.timeout_ms = 15_000;
    world.dispatch("a").await;
    let _first = world.worker();
    world.until_effect().await;
    world.bus.cut_off(&instance("w1"), Duration::from_secs(9));
    let _second = world.worker();
    world.until_acked().await;
    expect![[r"
        start 1 by w1
        obs 1 ok: done"]]
    .assert_eq(&world.story());
}

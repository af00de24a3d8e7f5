//! Turns, crashes and stops.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use proto::error_code::ErrorCode;
use proto::fact::{EndReason, Fact, Outcome, SealReason};
use proto::input::InputBody;
use proto::model::{Finish, ModelError, ModelErrorKind, ModelRequest};
use proto::observation::Receipt;
use proto::record::Record;
use proto::transcript::Entry;
use serde_json::Map;
use testkit::model::{ScriptedModel, Step, call, end, text};

use crate::world::{World, message, name};

fn turns_of(request: &ModelRequest) -> usize {
    let entries = request.transcript.entries().iter();
    entries.filter(|entry| matches!(entry, Entry::Turn(_))).count()
}

fn slowly(words: &str) -> Vec<Step> {
    words
        .split_inclusive(' ')
        .flat_map(|word| [Step::Wait(Duration::from_millis(100)), text(word)])
        .collect()
}

/// Calls `tool` once, then answers.
fn one_call(tool: &'static str) -> ScriptedModel {
    ScriptedModel::new(move |request| {
        Ok(if turns_of(request) == 0 {
            let mut steps = vec![text("Looking. "), call(0, tool, Map::new())];
            steps.extend(slowly("and some more words"));
            steps.push(end(Finish::ToolCalls));
            steps
        } else {
            vec![text("All is well."), end(Finish::Stop)]
        })
    })
}

fn failed(retryable: bool) -> ModelError {
    ModelError {
        kind: ModelErrorKind::HttpError,
        retryable,
        retry_after: None,
        status: Some(503),
        message: "overloaded".to_owned(),
        code: None,
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_calls_a_tool_and_answers() {
    let mut world = World::new(one_call("pay")).await;
    world.planner("planner-a", 1);
    world.worker("pay");
    world.message("1", "pay it").await;
    let end = world.until_finished().await;
    assert_eq!((end.outcome, end.reason), (Outcome::Answered, EndReason::Answer));
    assert_eq!(end.answer, "All is well.");
    assert_eq!(
        world.trace(),
        "input started1.1 completed1 call:pay observation started2.1 completed2 finished:Answer"
    );
}

#[tokio::test(start_paused = true)]
async fn a_safe_call_goes_out_before_the_reply_has_ended() {
    let mut world = World::new(one_call("look")).await;
    world.planner("planner-a", 1);
    world.worker("look");
    world.message("1", "look").await;
    world.until_finished().await;
    assert_eq!(
        world.trace(),
        "input started1.1 call:look observation completed1 started2.1 completed2 finished:Answer"
    );
}

#[tokio::test(start_paused = true)]
async fn a_planner_killed_after_a_dispatch_is_replaced_and_its_turn_sealed() {
    let mut world = World::new(one_call("look")).await;
    world.planner("planner-a", 1);
    world.message("1", "look").await;
    world.until("the dispatch", |record| matches!(record, Record::ToolCall(_))).await;
    world.bus.kill(&name("planner-a"));
    world.planner("planner-b", 2);
    world.worker("look");
    let end = world.until_finished().await;
    assert_eq!(end.answer, "All is well.");
    let trace = world.trace();
    assert!(trace.contains("sealed1:OwnerLost"), "{trace}");
    assert_eq!(trace.matches("call:look").count(), 1, "{trace}");
}

/// Words of a reply that broke and was asked for again are no words of the turn, also when the second
/// reply has come as far as the first.
#[tokio::test(start_paused = true)]
async fn a_sealed_turn_keeps_the_words_of_the_last_reply() {
    let tries = Arc::new(AtomicU32::new(0));
    let model = ScriptedModel::new(move |request| {
        let wait = Step::Wait(Duration::from_secs(1));
        Ok(match (turns_of(request), tries.fetch_add(1, Ordering::Relaxed)) {
            (0, 0) => vec![text("on"), wait, text("e"), Step::Break(failed(true))],
            (0, _) => vec![text("two"), call(0, "look", Map::new()), wait, end(Finish::Stop)],
            _ => vec![text("Done."), end(Finish::Stop)],
        })
    });
    let mut world = World::new(model).await;
    world.planner("planner-a", 1);
    world.message("1", "look").await;
    world.until("the dispatch", |record| matches!(record, Record::ToolCall(_))).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    world.bus.kill(&name("planner-a"));
    world.planner("planner-b", 2);
    world.worker("look");
    let sealed =
        world.until("the seal", |record| matches!(record, Record::Fact(Fact::TurnSealed(_)))).await;
    let Record::Fact(Fact::TurnSealed(sealed)) = sealed else { panic!("{sealed:?}") };
    assert_eq!((sealed.text.as_str(), sealed.why), ("two", SealReason::OwnerLost));
}

#[tokio::test(start_paused = true)]
async fn a_planner_killed_before_a_dispatch_costs_one_more_start() {
    let model = ScriptedModel::new(|_| {
        let mut steps = slowly("thinking for quite a while about this");
        steps.push(end(Finish::Stop));
        Ok(steps)
    });
    let mut world = World::new(model).await;
    world.planner("planner-a", 1);
    world.message("1", "think").await;
    let begun = |record: &Record| matches!(record, Record::Fact(Fact::TurnStarted(_)));
    world.until("the start", begun).await;
    world.bus.kill(&name("planner-a"));
    world.planner("planner-b", 2);
    let end = world.until_finished().await;
    assert_eq!(end.answer, "thinking for quite a while about this");
    assert_eq!(world.trace(), "input started1.1 started1.2 completed1 finished:Answer");
}

#[tokio::test(start_paused = true)]
async fn a_cancel_stops_the_stream_and_keeps_its_words() {
    let model = ScriptedModel::new(|_| {
        let mut steps = slowly("one two three");
        steps.push(Step::Wait(Duration::from_mins(1)));
        steps.push(end(Finish::Stop));
        Ok(steps)
    });
    let mut world = World::new(model).await;
    world.planner("planner-a", 1);
    world.message("1", "count").await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    world.say("2", InputBody::Cancel { reason: String::new() }).await;
    let end = world.until_finished().await;
    assert_eq!((end.outcome, end.reason), (Outcome::Stopped, EndReason::Cancelled));
    let sealed =
        world.until("the seal", |record| matches!(record, Record::Fact(Fact::TurnSealed(_)))).await;
    let Record::Fact(Fact::TurnSealed(sealed)) = sealed else { panic!("{sealed:?}") };
    assert_eq!((sealed.text.as_str(), sealed.why), ("one two three", SealReason::Interrupted));
}

#[tokio::test(start_paused = true)]
async fn a_cancel_bars_an_irreversible_call_that_no_worker_took() {
    let mut world = World::new(one_call("pay")).await;
    world.planner("planner-a", 1);
    world.message("1", "pay it").await;
    world.until("the dispatch", |record| matches!(record, Record::ToolCall(_))).await;
    world.say("2", InputBody::Cancel { reason: String::new() }).await;
    world.until_finished().await;
    let closed = |record: &Record| matches!(record, Record::Fact(Fact::CallClosed { .. }));
    let Record::Fact(Fact::CallClosed { observation }) = world.until("the receipt", closed).await
    else {
        panic!("not closed")
    };
    assert_eq!(observation.code, Some(ErrorCode::Cancelled));
    assert_eq!(observation.receipt, Some(Receipt::NeverStarted));
    assert_eq!(
        world.trace(),
        "input started1.1 completed1 call:pay input start closed:cancelled finished:Cancelled"
    );
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_stops_the_turn_and_the_run_goes_on_with_the_new_words() {
    let model = ScriptedModel::new(|request| {
        if turns_of(request) > 0 {
            return Ok(vec![text("Understood."), end(Finish::Stop)]);
        }
        Ok(vec![text("First "), Step::Wait(Duration::from_mins(1)), end(Finish::Stop)])
    });
    let mut world = World::new(model).await;
    world.planner("planner-a", 1);
    world.message("1", "do it").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    world.say("2", InputBody::Interrupt(message("do the other thing"))).await;
    let end = world.until_finished().await;
    assert_eq!(end.answer, "Understood.");
    assert_eq!(
        world.trace(),
        "input started1.1 input sealed1:Interrupted started2.1 completed2 finished:Answer"
    );
}

#[tokio::test(start_paused = true)]
async fn a_model_that_fails_is_asked_again_and_the_failure_is_never_shown() {
    let tries = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&tries);
    let model = ScriptedModel::new(move |_| {
        if counted.fetch_add(1, Ordering::Relaxed) < 2 {
            return Err(failed(true));
        }
        Ok(vec![text("Back."), end(Finish::Stop)])
    });
    let mut world = World::new(model).await;
    world.planner("planner-a", 1);
    world.message("1", "hello").await;
    assert_eq!(world.until_finished().await.answer, "Back.");
    assert_eq!(tries.load(Ordering::Relaxed), 3);
    assert_eq!(world.trace(), "input started1.1 completed1 finished:Answer");
}

#[tokio::test(start_paused = true)]
async fn a_model_that_refuses_ends_the_run_with_its_code() {
    let mut world = World::new(ScriptedModel::new(|_| Err(failed(false)))).await;
    world.planner("planner-a", 1);
    world.message("1", "hello").await;
    let end = world.until_finished().await;
    assert_eq!((end.outcome, end.code), (Outcome::Failed, Some(ErrorCode::ModelRefused)));
    assert!(end.answer.contains("overloaded"), "{}", end.answer);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_after_a_dispatch_is_sealed_and_never_asked_again() {
    let model = ScriptedModel::new(|request| {
        Ok(if turns_of(request) == 0 {
            vec![text("Looking. "), call(0, "look", Map::new()), Step::Break(failed(true))]
        } else {
            vec![text("Done."), end(Finish::Stop)]
        })
    });
    let mut world = World::new(model).await;
    world.planner("planner-a", 1);
    world.worker("look");
    world.message("1", "look").await;
    assert_eq!(world.until_finished().await.answer, "Done.");
    let trace = world.trace();
    assert!(trace.contains("sealed1:StreamBroken"), "{trace}");
    assert_eq!(trace.matches("call:look").count(), 1, "{trace}");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_nobody_takes_is_closed_at_its_deadline() {
    let mut world = World::new(one_call("look")).await;
    world.planner("planner-a", 1);
    world.message("1", "look").await;
    assert_eq!(world.until_finished().await.answer, "All is well.");
    let trace = world.trace();
    assert!(trace.contains("tick closed:timed_out started2.1"), "{trace}");
}

#[tokio::test(start_paused = true)]
async fn the_same_input_key_is_one_input() {
    let mut world = World::new(one_call("look")).await;
    world.planner("planner-a", 1);
    world.worker("look");
    world.message("1", "look").await;
    world.message("1", "look").await;
    world.until_finished().await;
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!(world.trace().matches("finished").count(), 1, "{}", world.trace());
    assert_eq!(world.bus.unacked(), Vec::new());
}

#[tokio::test(start_paused = true)]
async fn two_planners_share_threads_without_doubling_turns() {
    let mut world = World::new(one_call("look")).await;
    world.planner("planner-a", 1);
    world.planner("planner-b", 2);
    world.worker("look");
    world.message("1", "look").await;
    world.until_finished().await;
    tokio::time::sleep(Duration::from_mins(2)).await;
    let trace = world.trace();
    assert_eq!(trace.matches("started").count(), 2, "{trace}");
    assert_eq!(world.bus.unacked(), Vec::new());
}

#[tokio::test(start_paused = true)]
async fn a_drained_planner_hands_back_and_another_goes_on() {
    let model = ScriptedModel::new(|_| {
        let steps = vec![text("a"), Step::Wait(Duration::from_secs(45)), end(Finish::Stop)];
        Ok(steps)
    });
    let mut world = World::new(model).await;
    world.planner("planner-a", 1);
    world.message("1", "wait").await;
    let begun = |record: &Record| matches!(record, Record::Fact(Fact::TurnStarted(_)));
    world.until("the start", begun).await;
    world.drain().await;
    world.planner("planner-b", 2);
    assert_eq!(world.until_finished().await.answer, "a");
    let expected = "input started1.1 sealed1:HandedBack started2.1 completed2 finished:Answer";
    assert_eq!(world.trace(), expected);
}

#[tokio::test(start_paused = true)]
async fn planners_that_shut_down_in_good_order_are_no_crash_loop_and_cost_no_turn() {
    let model = ScriptedModel::new(|_| {
        let steps = vec![text("a"), Step::Wait(Duration::from_secs(45)), end(Finish::Stop)];
        Ok(steps)
    });
    let mut world = World::new(model).await;
    world.message("1", "wait").await;
    for life in 1..=12_usize {
        world.planner(&format!("planner-{life}"), u64::try_from(life).unwrap());
        world.until_started(life).await;
        world.drain().await;
    }
    world.planner("planner-z", 99);
    let finished = world.until_finished().await;
    assert_eq!((finished.answer.as_str(), finished.reason), ("a", EndReason::Answer));
}

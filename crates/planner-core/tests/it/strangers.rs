//! Records that make no sense where they stand change nothing but the head.

use planner_core::Thread;
use proto::call::{Disposition, RequestedCall};
use proto::error_code::ErrorCode;
use proto::fact::{
    EndReason, Fact, Outcome, RunFinished, SealReason, TurnCompleted, TurnSealed, TurnStarted,
    Usage,
};
use proto::hash::fingerprint;
use proto::ids::{AgentName, InputKey, Nonce, Sequence};
use proto::input::{Input, InputBody, Message, Source};
use proto::observation::Observation;
use proto::record::{Placed, Record};
use proto::subject::Leaf;
use proto::time::Timestamp;

use crate::world::{arguments, call_id, instance, place, result, short};

/// Folds one more record.
fn fold(thread: &mut Thread, record: Record) {
    let sequence = thread.head.sequence.next();
    let leaf = match &record {
        Record::Input(_) => Leaf::In,
        Record::Observation(_) => Leaf::Observation,
        Record::Fact(_) | Record::ToolCall(_) | Record::Start(_) | Record::Tick => Leaf::Fact,
    };
    let nonce = Nonce::new(format!("{:016x}", sequence.0)).unwrap();
    thread.apply(&leaf, &Placed { sequence, at: Timestamp(1), nonce, record });
}

fn started(run: u32, turn: u32, seen: u64) -> Record {
    Record::Fact(Fact::TurnStarted(TurnStarted {
        run,
        turn,
        start: 1,
        seen: Sequence(seen),
        owner: instance("p1"),
        held_by: Sequence(1),
        deadline: Timestamp(1000),
        agent: AgentName::new("main").unwrap(),
        agent_fingerprint: fingerprint("main"),
        note: None,
        verify: None,
        recalled: Vec::new(),
        draft: false,
    }))
}

fn wish(id: &str, tool: &str) -> RequestedCall {
    let refused = Observation::synthesised(call_id(id), ErrorCode::UnknownTool, "no");
    RequestedCall {
        tool_call_id: call_id(id),
        tool: tool.into(),
        arguments: arguments(""),
        opaque: None,
        terms: None,
        disposition: Disposition::Answered(Box::new(refused)),
        corrected: Vec::new(),
        asked_because: None,
    }
}

fn completed(run: u32, turn: u32, started: u64, calls: Vec<RequestedCall>) -> Record {
    Record::Fact(Fact::TurnCompleted(TurnCompleted {
        run,
        turn,
        started: Sequence(started),
        text: "words".into(),
        reasoning: String::new(),
        calls,
        model: "m".into(),
        usage: Usage::default(),
        confidence: None,
        opaque: None,
        counted: None,
    }))
}

fn finished(run: u32, seen: u64) -> Record {
    Record::Fact(Fact::RunFinished(RunFinished {
        run,
        seen: Sequence(seen),
        outcome: Outcome::Stopped,
        reason: EndReason::Cancelled,
        code: None,
        answer: "ended".into(),
        turns: 1,
        calls: 0,
        usage: Usage::default(),
        unevaluated: false,
        verification: None,
    }))
}

fn message(key: &str) -> Record {
    let key = InputKey::new(key).unwrap();
    Record::Input(Input {
        key,
        source: Source::Client,
        body: InputBody::Message(Message::text("hi")),
    })
}

/// Run 1 is over, run 2 has one turn in progress, started at 5, and a message waits.
fn thread() -> Thread {
    let mut thread = Thread::new(place());
    for record in [
        message("a"),
        started(1, 1, 1),
        finished(1, 2),
        message("b"),
        started(2, 1, 4),
        message("c"),
    ] {
        fold(&mut thread, record);
    }
    thread
}

/// The thread as it would be without its newest records.
fn but_for_the_head(mut thread: Thread, before: &Thread) -> Thread {
    thread.head = before.head.clone();
    thread.plan_last = before.plan_last;
    thread.trail.clone_from(&before.trail);
    thread.grounds.clone_from(&before.grounds);
    thread
}

#[test]
fn facts_of_other_runs_and_turns_change_nothing() {
    for record in [
        started(1, 2, 6),
        started(3, 1, 6),
        completed(1, 1, 2, Vec::new()),
        completed(2, 1, 2, Vec::new()),
        completed(3, 1, 5, Vec::new()),
        finished(1, 6),
        finished(3, 6),
        Record::Fact(Fact::TurnSealed(TurnSealed {
            run: 2,
            turn: 1,
            started: Sequence(4),
            text: String::new(),
            reasoning: String::new(),
            calls: Vec::new(),
            why: SealReason::OwnerLost,
            usage: Usage::default(),
        })),
        Record::Fact(Fact::CallClosed { observation: result(&call_id("c9"), "x", Timestamp(1)) }),
        Record::Observation(result(&call_id("c9"), "x", Timestamp(1))),
        Record::Tick,
    ] {
        let before = thread();
        let mut after = before.clone();
        fold(&mut after, record.clone());
        assert_eq!(after.head.sequence, before.head.sequence.next(), "{record:?}");
        assert_eq!(but_for_the_head(after, &before), before, "{record:?}");
    }
}

#[test]
fn a_run_that_was_never_begun_has_no_turns_to_end() {
    let mut thread = Thread::new(place());
    fold(&mut thread, completed(1, 1, 1, Vec::new()));
    assert_eq!(thread.run, None);
    assert_eq!(thread.log, Vec::new());
}

#[test]
fn records_at_or_below_the_head_are_passed_over() {
    let before = thread();
    let mut after = before.clone();
    for sequence in 1..=before.head.sequence.0 {
        let nonce = Nonce::new("00000000000000aa").unwrap();
        let (sequence, at) = (Sequence(sequence), Timestamp(9));
        after.apply(&Leaf::Fact, &Placed { sequence, at, nonce, record: started(2, 2, 6) });
        after.apply_poison(&Leaf::Fact, sequence, at, "no".into());
    }
    assert_eq!(after, before);
}

#[test]
fn an_id_names_one_call_for_ever() {
    let mut thread = thread();
    fold(&mut thread, completed(2, 1, 5, vec![wish("c1", "one"), wish("c1", "two")]));
    fold(&mut thread, started(2, 2, 7));
    fold(&mut thread, completed(2, 2, 8, vec![wish("c1", "three"), wish("c2", "four")]));
    let calls: Vec<(String, &str)> = thread
        .calls
        .values()
        .map(|call| (short(call.id()), call.requested.tool.as_str()))
        .collect();
    assert_eq!(calls, [("c1".to_owned(), "one"), ("c2".to_owned(), "four")]);
    assert_eq!(thread.run.unwrap().reply.unwrap().calls, [call_id("c2")]);
}

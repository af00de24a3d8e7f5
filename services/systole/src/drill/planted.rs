//! Faults that are planted in journals, each of which the rules of a row have to find.

use std::collections::BTreeSet;

use proto::call::{Disposition, RequestedCall, Start, Started, Terms, ToolCall};
use proto::error_code::ErrorCode;
use proto::fact::{EndReason, Fact, Outcome, RunFinished, TurnCompleted, TurnStarted, Usage};
use proto::hash::{arguments_hash, fingerprint};
use proto::ids::{
    AgentName, InputKey, InstanceId, Nonce, Partition, Sequence, TenantId, ThreadId, ThreadRef,
    ToolCallId, ToolName,
};
use proto::input::{Input, InputBody, Message, Source};
use proto::observation::Observation;
use proto::record::{Placed, Record};
use proto::time::Timestamp;
use proto::tool::{Effect, Retry};

use super::after::altering;
use super::judge::{Counts, Kept};
use super::{clocks, twice};

/// A booking as it goes when nothing fails: its last record is the tenth.
fn booking() -> Vec<Record> {
    vec![
        Record::Input(Input {
            key: InputKey::new("one").unwrap(),
            source: Source::Client,
            body: InputBody::Message(Message::text("hold r0n0")),
        }),
        turn(1, 1, 1),
        Record::Fact(Fact::TurnCompleted(completed(1, 2, vec![requested()]))),
        call(),
        start(1),
        Record::Observation(observation("booked r0n0", None)),
        turn(2, 1, 6),
        Record::Fact(Fact::TurnCompleted(completed(2, 7, Vec::new()))),
        Record::Fact(Fact::RunFinished(RunFinished {
            run: 1,
            seen: Sequence(8),
            outcome: Outcome::Answered,
            reason: EndReason::Answer,
            code: None,
            answer: "Done.".into(),
            turns: 2,
            calls: 1,
            usage: Usage::default(),
            unevaluated: false,
            verification: None,
        })),
    ]
}

fn turn(turn: u32, start: u32, seen: u64) -> Record {
    Record::Fact(Fact::TurnStarted(TurnStarted {
        run: 1,
        turn,
        start,
        seen: Sequence(seen),
        owner: planner(),
        held_by: Sequence(1),
        deadline: Timestamp(1_000),
        agent: AgentName::new("clerk").unwrap(),
        agent_fingerprint: fingerprint("clerk"),
        note: None,
        verify: None,
        draft: false,
        recalled: Vec::new(),
    }))
}

fn completed(turn: u32, started: u64, calls: Vec<RequestedCall>) -> TurnCompleted {
    TurnCompleted {
        run: 1,
        turn,
        started: Sequence(started),
        text: "words".into(),
        reasoning: String::new(),
        calls,
        model: "m".into(),
        usage: Usage::default(),
        counted: None,
        confidence: None,
        opaque: None,
    }
}

fn requested() -> RequestedCall {
    RequestedCall {
        tool_call_id: id(),
        tool: "book".into(),
        arguments: serde_json::Map::new(),
        opaque: None,
        terms: Some(terms()),
        disposition: Disposition::Dispatch,
        corrected: Vec::new(),
        asked_because: None,
    }
}

fn call() -> Record {
    let arguments = serde_json::Map::new();
    Record::ToolCall(ToolCall {
        tool_call_id: id(),
        run: 1,
        turn: 1,
        position: 0,
        tool: ToolName::new("book").unwrap(),
        arguments_hash: arguments_hash(&arguments),
        arguments,
        terms: terms(),
        start_by: Timestamp(500),
        deadline: Timestamp(900),
        idempotency_key: "k".into(),
        approved: None,
        opaque: None,
    })
}

fn terms() -> Terms {
    Terms {
        effect: Effect::Irreversible,
        fingerprint: fingerprint("book"),
        timeout_ms: 2_000,
        retry: Retry::default(),
        deadlines: proto::tool::Deadlines::default(),
    }
}

fn start(attempt: u32) -> Record {
    Record::Start(Start::Started(Started {
        tool_call_id: id(),
        attempt,
        worker: InstanceId::new("w1").unwrap(),
        host: "h".into(),
        process_group: None,
        at: Timestamp(1),
        until: Timestamp(2),
    }))
}

fn observation(content: &str, code: Option<ErrorCode>) -> Observation {
    let made = Observation::synthesised(id(), ErrorCode::TimedOut, content);
    Observation { attempt: 1, code, ..made }
}

fn id() -> ToolCallId {
    ToolCallId::new("000000one".to_owned()).unwrap()
}

fn planner() -> InstanceId {
    InstanceId::new("p1").unwrap()
}

fn placed(records: Vec<Record>) -> Vec<Placed> {
    let placed = (1..).zip(records).map(|(number, record)| Placed {
        sequence: Sequence(number),
        at: Timestamp(i64::try_from(number).unwrap()),
        nonce: Nonce::new(format!("{number:016x}")).unwrap(),
        record,
    });
    placed.collect()
}

fn judged(records: Vec<Record>, effects: &[&str]) -> Counts {
    let thread = ThreadId::from_parts(1, 1);
    let tenant = TenantId::new("local").unwrap();
    let place = ThreadRef { partition: Partition(0), tenant, thread };
    let effects: Vec<String> = effects.iter().map(|effect| (*effect).to_owned()).collect();
    let mut counts = Counts::of(&effects);
    let distinct: BTreeSet<&String> = effects.iter().collect();
    counts.add((&place, &placed(records)), &distinct, Kept::Whole);
    counts
}

#[test]
fn nothing_is_found_where_nothing_is_planted() {
    let counts = judged(booking(), &["r0n0"]);
    assert!(counts.keeps_promises(), "{counts:?}");
    assert_eq!(clocks::broken(&counts), Vec::<String>::new());
    assert_eq!(twice::broken(&counts, 0.0), Vec::<String>::new());
    assert_eq!(altering(&placed(booking()), Sequence(9)), Vec::<String>::new());
}

#[test]
fn a_clock_that_closes_a_call_of_a_living_worker_is_found() {
    let mut records = booking();
    let closed = observation("overdue", Some(ErrorCode::TimedOut));
    records.insert(5, Record::Fact(Fact::CallClosed { observation: closed }));
    let counts = judged(records, &["r0n0"]);
    assert_eq!(clocks::broken(&counts), ["1 calls were closed although their worker lives"]);
}

#[test]
fn a_clock_that_lets_a_call_be_refused_as_too_late_is_found() {
    let mut records = booking();
    let late = observation("It was not started in time.", Some(ErrorCode::Unavailable));
    records.splice(4..6, [Record::Observation(late)]);
    let counts = judged(records, &[]);
    let why = "1 orders were not booked although nothing failed (unavailable)";
    assert_eq!(clocks::broken(&counts), [why]);
}

#[test]
fn a_turn_that_two_planners_asked_for_is_found() {
    let mut records = booking();
    records.insert(2, turn(1, 2, 1));
    let counts = judged(records, &["r0n0"]);
    assert_eq!(counts.model_calls_repeated, 1);
    let why = "1 model calls were repeated although both planners live";
    assert_eq!(twice::broken(&counts, 0.0), [why]);
}

#[test]
fn a_call_that_two_workers_carried_out_is_found() {
    let mut records = booking();
    records.insert(5, start(1));
    let counts = judged(records, &["r0n0", "r0n0"]);
    assert_eq!(counts.effects_repeated, 1);
    assert!(!counts.violations.is_empty(), "a second start breaks an invariant");
    assert!(!counts.keeps_promises());
}

#[test]
fn a_call_that_was_dispatched_twice_is_found() {
    let mut records = booking();
    records.insert(4, call());
    let counts = judged(records, &["r0n0"]);
    assert!(!counts.violations.is_empty(), "{counts:?}");
}

#[test]
fn a_late_result_that_wakes_a_run_is_found_and_one_that_is_only_kept_is_not() {
    let mut records = booking();
    records.push(Record::Observation(observation("booked r0n0", None)));
    assert_eq!(altering(&placed(records.clone()), Sequence(9)), Vec::<String>::new());
    records.push(turn(3, 1, 10));
    let found = altering(&placed(records), Sequence(9));
    assert_eq!(found, ["fact at 11 after the run had ended"]);
}

#[test]
fn a_result_that_is_told_and_has_no_effect_is_found() {
    let counts = judged(booking(), &[]);
    assert_eq!((counts.claimed_in_vain, counts.keeps_promises()), (1, false));
}

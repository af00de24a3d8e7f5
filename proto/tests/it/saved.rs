//! A thread as snapshots and checkpoints keep it: its bytes are a fixture like those of a message,
//! because an artifact outlives the version that wrote it.

use proto::call::Disposition;
use proto::envelope::DecodeError;
use proto::fact::{Estimator, Recalled, VerifyStep};
use proto::grounds::Grounds;
use proto::ids::{InputKey, Nonce, Sequence};
use proto::input::Decision;
use proto::saved::{
    SavedCall, SavedCheckpoint, SavedHead, SavedLogged, SavedMode, SavedOpenTurn, SavedRatio,
    SavedReply, SavedRun, SavedStart, SavedThread, SavedUnread, SavedVerifying,
};
use serde_json::{Value, json};

use crate::samples::{
    agent_name, arguments_hash, asked, at, call_id, failed, finished, message, observation, opaque,
    requested, start, started, thread, tool, tool_call, usage,
};

/// Name and text of each.
pub(crate) fn all() -> Vec<(String, String)> {
    let text = |saved: &SavedThread| String::from_utf8(saved.encode()).unwrap();
    vec![
        ("saved.at_rest".into(), text(&at_rest())),
        ("saved.running".into(), text(&running())),
        ("saved.verifying".into(), text(&verifying())),
    ]
}

fn at_rest() -> SavedThread {
    SavedThread {
        place: thread(),
        head: SavedHead {
            sequence: Sequence(9),
            nonce: Some(Nonce::new("00ff00ff00ff00ff").unwrap()),
            at: at(9),
            told_at: at(8),
        },
        plan_last: Sequence(9),
        trail: Vec::new(),
        agent: None,
        keys: Vec::new(),
        unread: Vec::new(),
        cancel_unstarted: None,
        run: None,
        runs: 1,
        log: Vec::new(),
        calls: Vec::new(),
        poison: Vec::new(),
        notes: Vec::new(),
        late: 0,
        finished: Some(Box::new(finished())),
        checkpoint: Some(SavedCheckpoint { runs: 1, folded: Sequence(8), at: at(9) }),
        ratios: Vec::new(),
        grounds: None,
    }
}

fn running() -> SavedThread {
    let unread = [SavedMode::Enqueue, SavedMode::Steer, SavedMode::Interrupt];
    let unread = unread.map(|mode| SavedUnread {
        sequence: Sequence(7),
        at: at(7),
        mode,
        message: message("And then?"),
    });
    let (model, by) = ("m-1".to_owned(), Estimator::Encoding);
    let ratio = SavedRatio { model, by, estimated: 100, counted: 95 };
    let mut grounds = Grounds::above(Sequence(6));
    grounds.note(Sequence(7), false);
    SavedThread {
        trail: vec![(Sequence(9), Nonce::new("00ff00ff00ff00ff").unwrap())],
        agent: Some(agent_name()),
        keys: vec![InputKey::new("k-1").unwrap()],
        unread: unread.into(),
        cancel_unstarted: Some(Sequence(6)),
        run: Some(run(None)),
        log: vec![
            SavedLogged::User { run: 2, text: "Repair it.".into() },
            SavedLogged::Note { text: "It was in doubt.".into() },
            SavedLogged::Turn {
                run: 2,
                turn: 1,
                text: "I restart it.".into(),
                reasoning: "It is ill.".into(),
                opaque: Some(opaque()),
                calls: vec![call_id()],
            },
        ],
        calls: [
            SavedStart::None,
            SavedStart::Started { sequence: Sequence(5), started: start() },
            SavedStart::Barred,
            SavedStart::BarredAfterCheck,
        ]
        .map(call)
        .into(),
        poison: vec![(Sequence(3), "not JSON".into())],
        notes: vec![(Sequence(8), "Its outcome is known.".into())],
        late: 1,
        ratios: vec![ratio],
        grounds: Some(grounds),
        ..at_rest()
    }
}

fn verifying() -> SavedThread {
    let verifying = SavedVerifying { step: VerifyStep::Questions, draft: "It is up.".into() };
    SavedThread { run: Some(run(Some(verifying))), ..at_rest() }
}

fn run(verifying: Option<SavedVerifying>) -> SavedRun {
    SavedRun {
        number: 2,
        taken_ns: 1_500_000_000,
        turns: 2,
        open: Some(SavedOpenTurn {
            sequence: Sequence(5),
            started: started(),
            dispatched: vec![call_id()],
        }),
        reply: Some(SavedReply {
            turn: 1,
            text: "I restart it.".into(),
            calls: vec![call_id()],
            sealed: true,
            confidence: Some(0.75),
        }),
        approved: vec![tool()],
        complexity: Some(3),
        cancel: Some(Sequence(8)),
        usage: usage(),
        calls: 1,
        repairs: 1,
        handed_back: 1,
        verifying,
        recalled: vec![Recalled { source: "runbook".into(), text: "Restart it.".into() }],
    }
}

fn call(start: SavedStart) -> SavedCall {
    SavedCall {
        requested: requested(Disposition::Dispatch),
        run: 2,
        turn: 1,
        position: 0,
        asked: Some(asked()),
        decision: Some(Decision {
            tool_call_id: call_id(),
            approve: true,
            arguments_hash: arguments_hash(),
            fingerprint: None,
            by: "ada".into(),
            note: "go on".into(),
        }),
        dispatched: Some(tool_call()),
        start,
        closed: Some(failed()),
        late: Some(observation()),
    }
}

#[test]
fn a_state_is_read_as_it_was_kept() {
    for thread in [at_rest(), running(), verifying()] {
        assert_eq!(SavedThread::decode(&thread.encode()), Ok(thread));
    }
}

#[test]
fn a_state_of_an_older_build_lacks_what_is_new() {
    let mut value: Value = serde_json::from_slice(&at_rest().encode()).unwrap();
    for newer in ["finished", "checkpoint"] {
        value["thread"].as_object_mut().unwrap().remove(newer).unwrap();
    }
    let older = SavedThread { finished: None, checkpoint: None, ..at_rest() };
    assert_eq!(SavedThread::decode(value.to_string().as_bytes()), Ok(older));
}

#[test]
fn only_a_state_in_the_middle_of_a_verification_is_kept_from_older_builds() {
    let reader = |thread: &SavedThread| {
        let value: Value = serde_json::from_slice(&thread.encode()).unwrap();
        value["min_reader"].clone()
    };
    let readers = [reader(&at_rest()), reader(&running()), reader(&verifying())];
    assert_eq!(readers, [json!(1), json!(1), json!(2)]);
}

#[test]
fn a_state_that_is_too_new_is_told_from_one_that_is_broken() {
    let mut value: Value = serde_json::from_slice(&at_rest().encode()).unwrap();
    value["min_reader"] = json!(99);
    value["thread"] = json!("of another kind");
    let read = SavedThread::decode(value.to_string().as_bytes());
    assert_eq!(read, Err(DecodeError::TooNew { min_reader: 99 }));
    let broken = SavedThread::decode(b"{\"min_reader\":1,\"thread\":{}}");
    assert!(matches!(broken, Err(DecodeError::Malformed(_))), "{broken:?}");
}

//! What is known beyond a journal that has lost its tail.

use planner_core::Thread;
use planner_core::restore::{dated, loss, says_the_same};
use proto::fact::{EndReason, Fact, Outcome, RunFinished, TurnStarted, Usage};
use proto::hash::fingerprint;
use proto::ids::{AgentName, InputKey, Nonce, Sequence};
use proto::input::{Input, InputBody, Message, Source};
use proto::record::{Placed, Record};
use proto::subject::Leaf;
use proto::time::Timestamp;

use crate::world::{instance, place};

/// Folds a record at a place; `mark` tells it from another one with the same number.
fn put(thread: &mut Thread, sequence: u64, mark: char, record: Record) {
    let leaf = if matches!(record, Record::Input(_)) { Leaf::In } else { Leaf::Fact };
    let nonce = Nonce::new(format!("{mark}{sequence:015x}")).unwrap();
    let (sequence, at) = (Sequence(sequence), Timestamp(1));
    thread.apply(&leaf, &Placed { sequence, at, nonce, record });
}

fn message(key: &str) -> Record {
    let body = InputBody::Message(Message::text(key));
    Record::Input(Input { key: InputKey::new(key).unwrap(), source: Source::Client, body })
}

fn started(run: u32, seen: u64) -> Record {
    Record::Fact(Fact::TurnStarted(TurnStarted {
        run,
        turn: 1,
        start: 1,
        seen: Sequence(seen),
        owner: instance("p1"),
        held_by: Sequence(seen),
        deadline: Timestamp(1000),
        agent: AgentName::new("main").unwrap(),
        agent_fingerprint: fingerprint("main"),
        note: None,
        verify: None,
        recalled: Vec::new(),
        draft: false,
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

/// An input at 1 and a turn that reads it at 2.
fn journal() -> Thread {
    let mut thread = Thread::new(place());
    put(&mut thread, 1, 'a', message("one"));
    put(&mut thread, 2, 'a', started(1, 1));
    thread
}

/// The same, with the end of the run and two further inputs.
fn known() -> Thread {
    let mut thread = journal();
    put(&mut thread, 3, 'a', message("two"));
    put(&mut thread, 4, 'a', finished(1, 3));
    put(&mut thread, 5, 'a', message("three"));
    thread
}

fn back(known: Thread, journal: &Thread) -> Thread {
    let loss = loss(&known, journal).unwrap();
    dated(known, loss.after, &loss.again, &loss.doubts)
}

#[test]
fn what_was_known_is_dated_back_to_the_last_record_in_both() {
    let thread = back(known(), &journal());
    assert_eq!((thread.head.sequence, thread.plan_last), (Sequence(2), Sequence(2)));
    assert_eq!((thread.runs, thread.run), (1, None));
    assert_eq!(loss(&known(), &journal()).unwrap().finished.unwrap().run, 1);
    let unread: Vec<_> = thread.unread.iter().map(|input| input.sequence).collect();
    assert_eq!(unread, [Sequence(2), Sequence(2)]);
}

#[test]
fn records_that_are_folded_again_change_nothing_but_new_ones_count() {
    let mut thread = back(known(), &journal());
    put(&mut thread, 3, 'b', message("two"));
    put(&mut thread, 4, 'b', message("four"));
    let texts: Vec<_> = thread.unread.iter().map(|input| input.message.text.as_str()).collect();
    assert_eq!(texts, ["two", "three", "four"]);
}

#[test]
fn a_turn_whose_start_was_lost_can_be_taken_over_at_once() {
    let mut known = known();
    put(&mut known, 6, 'a', started(2, 5));
    let thread = back(known, &journal());
    let open = thread.run.unwrap().open.unwrap();
    assert_eq!((open.sequence, open.started.deadline), (Sequence(2), Timestamp(0)));
}

/// Somebody has decided without the knowledge: the journal is right.
#[test]
fn a_chain_that_has_gone_on_is_not_restored() {
    let mut journal = journal();
    put(&mut journal, 4, 'b', finished(1, 2));
    assert_eq!(loss(&known(), &journal), None);
}

#[test]
fn a_journal_without_any_record_of_the_chain_is_restored_from_the_beginning() {
    let loss = loss(&known(), &Thread::new(place())).unwrap();
    assert_eq!(loss.after, Sequence::NONE);
}

#[test]
fn a_tick_that_was_lost_is_no_loss() {
    let mut known = journal();
    put(&mut known, 3, 'a', Record::Tick);
    let journal = journal();
    assert!(says_the_same(&back(known, &journal), &journal));
    assert!(!says_the_same(&back(self::known(), &journal), &journal));
}

/// A planner that did not know of the loss has decided from records that are gone, and its record
/// took a number of theirs: a turn that read what is not there, and an end of the run.
#[test]
fn a_decision_from_records_that_are_gone_is_void() {
    let mut thread = journal();
    put(&mut thread, 3, 'b', finished(1, 7));
    put(&mut thread, 4, 'b', started(2, 9));
    let run = thread.run.as_ref().unwrap();
    assert_eq!((run.number, run.open.as_ref().unwrap().sequence), (1, Sequence(2)));
    assert_eq!((thread.runs, thread.plan_last), (1, Sequence(4)));
    assert!(thread.finished.is_none());
}

/// The same on a bus with many threads: theirs have taken the numbers, so that the record landed above
/// all that it was decided from. What lies below its number now was never read by a model.
#[test]
fn a_decision_that_landed_above_the_lost_records_it_was_decided_from_is_void_too() {
    let mut thread = journal();
    put(&mut thread, 3, 'b', finished(1, 2));
    // Its planner had folded an input at 7, which was lost; this one came afterwards, at 5.
    put(&mut thread, 5, 'b', message("after"));
    put(&mut thread, 9, 'b', started(2, 7));
    assert!(thread.run.is_none());
    assert_eq!(thread.unread.len(), 1, "it waits for its turn");
    put(&mut thread, 10, 'b', started(2, 9));
    assert_eq!((thread.run.unwrap().number, thread.unread.len()), (2, 0));
}

/// A fold that begins in the middle cannot know what lay before.
#[test]
fn a_decision_from_what_lies_before_the_first_record_there_is_stands() {
    let mut thread = Thread::new(place());
    put(&mut thread, 8, 'a', message("kept"));
    put(&mut thread, 9, 'a', started(1, 5));
    assert!(thread.run.is_some());
}

/// So does one that was folded on from a state that an older build kept.
#[test]
fn a_state_without_grounds_is_no_reason_to_doubt_a_decision() {
    let mut thread = journal();
    put(&mut thread, 3, 'a', finished(1, 2));
    put(&mut thread, 5, 'a', message("next"));
    let mut saved = proto::saved::SavedThread::from(&thread);
    saved.grounds = None;
    let mut thread = Thread::from(saved);
    put(&mut thread, 6, 'a', started(2, 5));
    assert!(thread.run.is_some());
}

//! Named rules over the recorded history of one thread; pure.
//!
//! Tests, the simulation, the load test and production judge a journal by these same functions. A
//! [`Checker`] is fed one record after another and answers at once what each record breaks;
//! [`Checker::at_rest`] adds what must hold once nothing is under way: no delivery is held, no
//! schedule is armed.
//!
//! Reading order: [`rule`], then the state that judges: `calls`, `starts`, `turns`, `inputs`.

mod calls;
mod inputs;
pub mod rule;
mod starts;
mod turns;

use std::collections::BTreeSet;

use proto::fact::Fact;
use proto::grounds::Grounds;
use proto::ids::{InputKey, Sequence, ToolCallId};
use proto::record::{Placed, Record};

pub use rule::{Invariant, Violation};

use calls::Calls;
use inputs::Inputs;
use rule::Report;
use turns::Turns;

/// What the records so far, in order, break.
pub fn check(history: &[Placed]) -> Vec<Violation> {
    let mut checker = Checker::of(history);
    history.iter().flat_map(|placed| checker.push(placed)).collect()
}

/// What a history breaks when nothing more will be appended by itself.
pub fn check_at_rest(history: &[Placed]) -> Vec<Violation> {
    let mut checker = Checker::of(history);
    let mut found: Vec<Violation> =
        history.iter().flat_map(|placed| checker.push(placed)).collect();
    found.extend(checker.at_rest());
    found
}

/// The same for a journal that may have lost its tail: records whose own numbers say that they were
/// decided from what is gone are void there, and what comes of calls that are gone is no mistake.
pub fn check_left(history: &[Placed], at_rest: bool) -> Vec<Violation> {
    let mut checker = Checker::of(history);
    if has_void(history) {
        checker.lost(unknown(history), []);
    }
    let mut found: Vec<Violation> =
        history.iter().flat_map(|placed| checker.push(placed)).collect();
    if at_rest {
        found.extend(checker.at_rest());
    }
    found
}

fn has_void(history: &[Placed]) -> bool {
    let mut grounds = Grounds::default();
    history.iter().any(|placed| is_void(&mut grounds, placed))
}

/// Whether the next record was decided from records that are not there.
fn is_void(grounds: &mut Grounds, placed: &Placed) -> bool {
    let (is_void, is_plan) = match &placed.record {
        Record::Fact(fact) => (grounds.is_void(fact, placed.sequence), true),
        Record::ToolCall(_) => (false, true),
        Record::Input(_) | Record::Start(_) | Record::Observation(_) | Record::Tick => {
            (false, false)
        }
    };
    grounds.note(placed.sequence, is_plan);
    is_void
}

/// Calls that are answered and were never dispatched, as far as the journal goes.
fn unknown(history: &[Placed]) -> Vec<ToolCallId> {
    let dispatched = history.iter().filter_map(|placed| match &placed.record {
        Record::ToolCall(call) => Some(&call.tool_call_id),
        Record::Input(_)
        | Record::Fact(_)
        | Record::Start(_)
        | Record::Observation(_)
        | Record::Tick => None,
    });
    let dispatched: BTreeSet<&ToolCallId> = dispatched.collect();
    let answered = history.iter().filter_map(|placed| match &placed.record {
        Record::Observation(observation) => Some(&observation.tool_call_id),
        Record::Input(_)
        | Record::Fact(_)
        | Record::ToolCall(_)
        | Record::Start(_)
        | Record::Tick => None,
    });
    answered.filter(|id| !dispatched.contains(id)).cloned().collect()
}

/// Judges one thread record by record. A push costs no more than the calls of one turn.
#[derive(Clone, Debug, Default)]
pub struct Checker {
    last: Sequence,
    calls: Calls,
    turns: Turns,
    inputs: Inputs,
    grounds: Grounds,
    /// The journal has lost records: what was decided from them is void, and no mistake.
    tail_lost: bool,
}

impl Checker {
    /// Nothing recorded yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// For a history in which a planner says what was lost.
    fn of(history: &[Placed]) -> Self {
        let mut checker = Self::default();
        for placed in history {
            if let Record::Fact(Fact::Restored(restored)) = &placed.record {
                let calls = restored.standing.run.iter().flat_map(|run| &run.calls);
                checker.lost(calls.map(|call| call.tool_call_id.clone()), []);
            }
        }
        checker
    }

    /// Records of these calls and inputs were lost by the journal: what is left of them breaks no
    /// rule.
    pub fn lost(
        &mut self,
        calls: impl IntoIterator<Item = ToolCallId>,
        inputs: impl IntoIterator<Item = InputKey>,
    ) {
        self.tail_lost = true;
        self.calls.forgive(calls);
        self.inputs.know(inputs);
    }

    /// Takes the next record of the thread and answers what it breaks.
    pub fn push(&mut self, placed: &Placed) -> Vec<Violation> {
        let mut report = Report::at(placed.sequence);
        if placed.sequence <= self.last {
            let why = format!("it follows sequence {}", self.last);
            report.breaks(Invariant::SequencesIncrease, why);
        }
        self.last = self.last.max(placed.sequence);
        let is_void = is_void(&mut self.grounds, placed) && self.tail_lost;
        match &placed.record {
            Record::Input(input) => {
                self.inputs.push(placed.sequence, input, self.turns.is_active());
            }
            Record::Fact(_) if is_void => {}
            Record::Fact(fact) => self.push_fact(placed.sequence, fact, &mut report),
            Record::ToolCall(call) => {
                self.turns.judge_dispatch(call, &mut report);
                self.calls.dispatched(placed.sequence, call, &mut report);
            }
            Record::Start(start) => self.calls.start(start, &mut report),
            Record::Observation(observation) => {
                self.calls.observed(placed.sequence, observation, &mut report);
            }
            Record::Tick => {}
        }
        report.found
    }

    /// What is left undone if the thread rests after the last record.
    pub fn at_rest(&self) -> Vec<Violation> {
        let mut report = Report::at(self.last);
        self.turns.judge_rest(&mut report);
        self.calls.judge_rest(&self.turns, &mut report);
        self.inputs.judge_rest(&mut report);
        report.found
    }
}

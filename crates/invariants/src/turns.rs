//! Turns and runs: numbered, one at a time.

use std::fmt;

use proto::call::{RequestedCall, ToolCall};
use proto::fact::{EndReason, Fact, RunFinished, Standing, TurnStarted, Verification};
use proto::ids::{Sequence, ToolCallId};

use crate::Checker;
use crate::calls::Ending;
use crate::rule::{Invariant, Report};

/// How often one turn may be started.
const MAX_STARTS: u32 = 3;

/// A turn's name within its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TurnId {
    pub(crate) run: u32,
    pub(crate) turn: u32,
}

impl fmt::Display for TurnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "turn {} of run {}", self.turn, self.run)
    }
}

/// Where the thread stands.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turns {
    /// Runs that are over; they are numbered from 1, so this is also the last one's number.
    finished: u32,
    /// Whether the run after the finished ones has begun.
    active: bool,
    /// Turns of the active run.
    turns: u32,
    open: Option<Open>,
    seen: Sequence,
    /// Calls that the last ended turn named.
    last_named: Vec<ToolCallId>,
    /// Calls that ended turns named and no later turn has proved to be answered.
    unproved: Vec<ToolCallId>,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    id: TurnId,
    start: u32,
    started: Sequence,
}

impl Turns {
    /// Whether a run is active.
    pub(crate) fn is_active(&self) -> bool {
        self.active
    }

    /// Whether a run is over.
    pub(crate) fn is_finished(&self, run: u32) -> bool {
        run <= self.finished
    }

    /// A call is dispatched for the turn that is open, or for the one that ended last.
    pub(crate) fn judge_dispatch(&self, call: &ToolCall, report: &mut Report) {
        let id = &call.tool_call_id;
        let turn = TurnId { run: call.run, turn: call.turn };
        if self.is_finished(call.run) {
            report.breaks(Invariant::NothingAfterRunEnd, format!("{id} of {turn} is dispatched"));
            return;
        }
        let allowed = match &self.open {
            Some(open) => open.id == turn,
            None => self.current() == turn && self.last_named.contains(id),
        };
        if !allowed {
            report.breaks(
                Invariant::CallsAreNamed,
                format!("{id}: no open or ended {turn} asks for it"),
            );
        }
    }

    /// At rest no run is active.
    pub(crate) fn judge_rest(&self, report: &mut Report) {
        if self.active {
            let why = format!("run {} is still active", self.finished.saturating_add(1));
            report.breaks(Invariant::EveryRunEnds, why);
        }
    }

    fn stands(&mut self, standing: &Standing) {
        self.open = None;
        self.last_named.clear();
        self.unproved.clear();
        self.active = standing.run.is_some();
        self.turns = 0;
        self.finished = standing.runs.saturating_sub(u32::from(self.active));
        let Some(run) = &standing.run else { return };
        self.turns = run.turns;
        let id = TurnId { run: run.number, turn: run.turns };
        self.open = run.open.map(|(started, start)| Open { id, start, started });
        let named = run.calls.iter().filter(|call| call.named);
        self.unproved = named.clone().map(|call| call.tool_call_id.clone()).collect();
        let last = named.filter(|call| call.turn == run.turns);
        self.last_named = last.map(|call| call.tool_call_id.clone()).collect();
    }

    fn current(&self) -> TurnId {
        TurnId { run: self.finished.saturating_add(1), turn: self.turns }
    }

    /// Judges the numbers of a start; answers whether it repeats the open turn.
    fn judge_start(&self, fact: &TurnStarted, report: &mut Report) -> bool {
        let id = TurnId { run: fact.run, turn: fact.turn };
        let again = self.open.is_some_and(|open| open.id == id);
        let next = match self.open {
            Some(open) if again => open.start.saturating_add(1),
            Some(_) | None => 1,
        };
        if let (Some(open), false) = (self.open, again) {
            report.breaks(
                Invariant::TurnsAreOrdered,
                format!("{id} starts while {} is open", open.id),
            );
        }
        if !again && fact.turn != self.turns.saturating_add(1) && fact.run == self.current().run {
            let why = format!("{id} starts after turn {}", self.turns);
            report.breaks(Invariant::TurnsAreOrdered, why);
        }
        if fact.start != next {
            let why = format!("start {} of {id} where {next} was next", fact.start);
            report.breaks(Invariant::TurnsAreOrdered, why);
        }
        if fact.start > MAX_STARTS {
            let why = format!("start {} of {id}", fact.start);
            report.breaks(Invariant::TurnStartsAreBounded, why);
        }
        again
    }

    fn judge_run(&self, run: u32, what: &str, report: &mut Report) {
        if self.is_finished(run) {
            report.breaks(Invariant::NothingAfterRunEnd, format!("{what} of run {run}"));
        } else if run != self.current().run {
            let why = format!("{what} of run {run}, run {} is next", self.current().run);
            report.breaks(Invariant::OneActiveRun, why);
        }
    }

    fn judge_seen(&mut self, at: Sequence, seen: Sequence, report: &mut Report) {
        if seen < self.seen {
            report.breaks(Invariant::SeenAdvances, format!("{seen} after {}", self.seen));
        }
        if seen >= at {
            report.breaks(Invariant::SeenAdvances, format!("{seen} does not lie before it"));
        }
        self.seen = self.seen.max(seen);
    }

    /// Closes the open turn, if it is this one.
    fn end(&mut self, id: TurnId, started: Sequence, calls: &[RequestedCall], report: &mut Report) {
        match self.open {
            Some(open) if open.id == id && open.started == started => {}
            Some(open) => {
                let why =
                    format!("{id} from {started} ends, {} from {} is open", open.id, open.started);
                report.breaks(Invariant::TurnsAreOrdered, why);
            }
            None => report.breaks(Invariant::TurnsAreOrdered, format!("{id} ends and is not open")),
        }
        self.open = None;
        self.last_named = calls.iter().map(|call| call.tool_call_id.clone()).collect();
        self.unproved.extend(self.last_named.iter().cloned());
    }
}

impl Checker {
    pub(crate) fn push_fact(&mut self, at: Sequence, fact: &Fact, report: &mut Report) {
        match fact {
            Fact::TurnStarted(fact) => self.turn_started(at, fact, report),
            Fact::TurnCompleted(fact) => {
                let turn = TurnId { run: fact.run, turn: fact.turn };
                let end = Ending { at, turn, sealed: false };
                self.turn_ended(end, fact.started, &fact.calls, report);
            }
            Fact::TurnSealed(fact) => {
                let turn = TurnId { run: fact.run, turn: fact.turn };
                let end = Ending { at, turn, sealed: true };
                self.calls.judge_sealed(&fact.calls, report);
                self.turn_ended(end, fact.started, &fact.calls, report);
            }
            Fact::CallClosed { observation } => {
                let turn = self.calls.closed(at, observation, report);
                if let Some(turn) = turn.filter(|turn| self.turns.is_finished(turn.run)) {
                    let why = format!("{} of {turn} is closed", observation.tool_call_id);
                    report.breaks(Invariant::NothingAfterRunEnd, why);
                }
            }
            Fact::ApprovalAsked(asked) => {
                if !self.turns.is_active() {
                    let why = format!("approval of {} is asked", asked.tool_call_id);
                    report.breaks(Invariant::NothingAfterRunEnd, why);
                }
            }
            Fact::RunFinished(fact) => self.run_finished(at, fact, report),
            Fact::Parked { .. } => {}
            Fact::Checkpoint(fact) => {
                self.calls.begins_late();
                self.stands(at, &fact.standing);
            }
            Fact::Restored(fact) => {
                for doubt in &fact.doubts {
                    self.calls.forgive([doubt.tool_call_id.clone()]);
                }
                self.stands(at, &fact.standing);
            }
        }
    }

    /// Goes on from where the thread stands by the word of a planner: the records that led there may
    /// be lost or purged.
    fn stands(&mut self, at: Sequence, standing: &Standing) {
        self.inputs.stands(standing);
        self.turns.stands(standing);
        self.calls.ended(at, &self.turns);
        if let Some(run) = &standing.run {
            self.calls.restored(at, run.number, &run.calls);
        }
    }

    fn turn_started(&mut self, at: Sequence, fact: &TurnStarted, report: &mut Report) {
        let id = TurnId { run: fact.run, turn: fact.turn };
        self.turns.judge_run(fact.run, "a turn", report);
        let again = self.turns.judge_start(fact, report);
        self.turns.judge_seen(at, fact.seen, report);
        if again && self.calls.any_dispatched(id) {
            let why = format!("{id} starts again, a call of it was dispatched");
            report.breaks(Invariant::TurnStartsAreBounded, why);
        }
        self.calls.judge_dispatched(&self.turns.last_named, report);
        let unproved = std::mem::take(&mut self.turns.unproved);
        self.calls.judge_transcript(&unproved, fact.seen, report);
        self.inputs.turn_started(fact, again);
        self.turns.active = true;
        self.turns.turns = fact.turn;
        self.turns.open = Some(Open { id, start: fact.start, started: at });
    }

    fn turn_ended(
        &mut self,
        end: Ending,
        started: Sequence,
        calls: &[RequestedCall],
        report: &mut Report,
    ) {
        self.turns.judge_run(end.turn.run, "the end of a turn", report);
        self.turns.end(end.turn, started, calls, report);
        self.calls.named(end, calls, report);
    }

    fn run_finished(&mut self, at: Sequence, fact: &RunFinished, report: &mut Report) {
        self.turns.judge_run(fact.run, "another end", report);
        self.turns.judge_seen(at, fact.seen, report);
        if let Some(open) = self.turns.open.filter(|open| self.calls.any_dispatched(open.id)) {
            let why = format!("{} is open and a call of it was dispatched", open.id);
            report.breaks(Invariant::CallsAreNamed, why);
        }
        // The draft of an earlier turn may be given while a step of its verification is open.
        let is_draft = matches!(fact.verification, Some(Verification::Unfinished { .. }));
        if let (Some(open), true) = (self.turns.open, is_answer(fact.reason) && !is_draft) {
            report
                .breaks(Invariant::TurnsAreOrdered, format!("an answer while {} is open", open.id));
        }
        self.calls.judge_dispatched(&self.turns.last_named, report);
        self.inputs.run_finished(fact);
        self.turns.open = None;
        self.turns.active = false;
        self.turns.turns = 0;
        self.turns.finished = self.turns.finished.max(fact.run);
        self.turns.last_named.clear();
    }
}

/// Whether a run that ends for this reason ends with a complete reply.
fn is_answer(reason: EndReason) -> bool {
    matches!(reason, EndReason::Answer | EndReason::Confident | EndReason::NothingNew)
}

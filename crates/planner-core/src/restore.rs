//! A journal that has lost its newest records, and somebody who still knows what they said.
//!
//! Sequence numbers of lost records are used again, so nothing of the lost tail can be told apart
//! by its number: what was known is dated back to the newest record of the chain that is still
//! there, and whatever lies above that is folded on top of it. Inputs and observations that were
//! folded before are known by their keys and change nothing.
//!
//! Whoever decided without this knowledge has moved the chain on, and the journal is right: what was
//! known is then dropped. So nothing is ever restored twice, nor below a checkpoint.

use proto::call::Disposition;
use proto::error_code::ErrorCode;
use proto::fact::{ActiveRun, KnownCall, Restored, RunFinished, Standing};
use proto::grounds::Grounds;
use proto::ids::{Sequence, ToolCallId};
use proto::observation::{ArtifactRef, Observation, Receipt};
use proto::time::Timestamp;

use crate::thread::{Call, Logged, OpenTurn, StartState, Thread};

/// What has to be written so that a thread goes on from what was known.
#[derive(Clone, Debug, PartialEq)]
pub struct Loss {
    /// The newest record of the chain that is in both.
    pub after: Sequence,
    /// Calls that are made again.
    pub again: Vec<ToolCallId>,
    /// Calls that are in doubt, with their observations.
    pub doubts: Vec<Observation>,
    /// Calls that must be barred first: a delivery of them may come once more.
    pub bars: Vec<ToolCallId>,
    /// The end of the newest run, when its record was lost.
    pub finished: Option<Box<RunFinished>>,
}

/// What `known` says beyond `journal`, the fold of what is still there; `None` when the two have no
/// chain in common any more, because somebody has gone on without it.
pub fn loss(known: &Thread, journal: &Thread) -> Option<Loss> {
    let after = common(known, journal)?;
    let finished = known.finished.clone().filter(|end| journal.ended() < end.run);
    let (again, doubts, bars) = (Vec::new(), Vec::new(), Vec::new());
    let mut loss = Loss { after, again, doubts, bars, finished };
    for call in known.open_calls() {
        loss.judge(call, journal.calls.get(call.id()));
    }
    Some(loss)
}

/// The chain's newest record, if both know it.
fn common(known: &Thread, journal: &Thread) -> Option<Sequence> {
    if journal.plan_last == Sequence::NONE {
        return Some(Sequence::NONE);
    }
    let newest = journal.trail.back().filter(|(at, _)| *at == journal.plan_last)?;
    known.trail.contains(newest).then_some(newest.0)
}

impl Loss {
    fn judge(&mut self, call: &Call, there: Option<&Call>) {
        let id = call.id();
        if call.dispatched.is_none() {
            let asked = call.asked.is_some() && there.is_none_or(|there| there.asked.is_none());
            if asked {
                self.again.push(id.clone());
            }
            return;
        }
        let has_record = there.is_some_and(|there| there.dispatched.is_some());
        let started = matches!(call.start, StartState::Started { .. });
        let has_start = there.is_some_and(|there| there.start != StartState::None);
        let start_lost = started && !has_start;
        let irreversible = call
            .requested
            .terms
            .as_ref()
            .is_none_or(|terms| terms.effect == proto::tool::Effect::Irreversible);
        if irreversible && (!has_record || start_lost) {
            self.doubts.push(doubt(call));
            if !has_start {
                self.bars.push(id.clone());
            }
        } else if !has_record {
            self.again.push(id.clone());
        }
    }

    /// The record, once the state is kept.
    pub fn restored(self, state: ArtifactRef, standing: Standing) -> Restored {
        let Self { after, again, doubts, bars: _, finished } = self;
        Restored { after, state, again, doubts, finished, standing }
    }
}

fn doubt(call: &Call) -> Observation {
    let began = match &call.start {
        StartState::Started { started, .. } => format!(
            "Attempt {} began on host {} (worker {}) at {}; it could still land until {} (Unix ms).",
            started.attempt, started.host, started.worker, started.at, started.until
        ),
        StartState::None | StartState::Barred | StartState::BarredAfterCheck => {
            "An attempt may have begun.".to_owned()
        }
    };
    let text = format!(
        "IN DOUBT: the records of this call were lost by the journal. {began} Its effect may have \
         happened. Check the real state before repeating the call."
    );
    Observation::synthesised(call.id().clone(), ErrorCode::InDoubt, text)
        .with_receipt(Receipt::Unknown)
}

/// What was known, dated back to `after`, with the calls as the loss leaves them. The records above
/// `after` that are still there are folded on top of it.
#[must_use]
pub fn dated(
    mut known: Thread,
    after: Sequence,
    again: &[ToolCallId],
    doubts: &[Observation],
) -> Thread {
    known.head.sequence = after;
    known.head.nonce = None;
    known.plan_last = after;
    known.trail.retain(|(at, _)| *at <= after);
    known.grounds = Grounds::above(after);
    known.poison.retain(|at, _| *at <= after);
    known.checkpoint = known.checkpoint.filter(|checkpoint| checkpoint.folded <= after);
    known.cancel_unstarted = known.cancel_unstarted.map(|at| at.min(after));
    for input in &mut known.unread {
        input.sequence = input.sequence.min(after);
    }
    for (at, _) in &mut known.notes {
        *at = (*at).min(after);
    }
    if let Some(run) = &mut known.run {
        run.cancel = run.cancel.map(|at| at.min(after));
        if let Some(open) = run.open.as_mut().filter(|open| open.sequence > after) {
            orphan(open, after);
        }
    }
    for call in known.calls.values_mut() {
        date_start(call, after);
    }
    for id in again {
        if let Some(call) = known.calls.get_mut(id) {
            call.dispatched = None;
            call.asked = call.asked.take().filter(|_| call.decision.is_some());
        }
    }
    for doubt in doubts {
        if let Some(call) = known.calls.get_mut(&doubt.tool_call_id) {
            call.closed.get_or_insert_with(|| doubt.clone());
        }
    }
    known
}

/// A turn whose start was lost: its owner cannot end it any more, and whoever looks next takes over.
fn orphan(open: &mut OpenTurn, after: Sequence) {
    open.sequence = after;
    open.started.held_by = open.started.held_by.min(after);
    open.started.seen = open.started.seen.min(after);
    open.started.deadline = Timestamp::default();
}

/// A start whose record was lost is nothing that a fence could expect.
fn date_start(call: &mut Call, after: Sequence) {
    if matches!(call.start, StartState::Started { sequence, .. } if sequence > after) {
        call.start = StartState::None;
    }
}

/// Whether two folds would lead to the same decisions. They may have been folded at another time
/// and from other numbers.
pub fn says_the_same(one: &Thread, other: &Thread) -> bool {
    let told = |thread: &Thread| {
        let mut told = thread.clone();
        told.head = crate::thread::Head::default();
        told.plan_last = Sequence::NONE;
        told.trail.clear();
        told.grounds = Grounds::default();
        told.late = 0;
        if let Some(run) = &mut told.run {
            run.taken = std::time::Duration::ZERO;
        }
        told
    };
    told(one) == told(other)
}

impl Thread {
    /// The newest run that is over.
    fn ended(&self) -> u32 {
        self.finished.as_ref().map_or(0, |end| end.run)
    }

    /// Where the thread stands, for readers of what comes after it.
    pub fn standing(&self) -> Standing {
        let run = self.run.as_ref().map(|run| ActiveRun {
            number: run.number,
            turns: run.turns,
            open: run.open.as_ref().map(|open| (open.sequence, open.started.start)),
            calls: self.known_calls(run.number),
        });
        let unread = self.unread.iter().map(|input| input.sequence).collect();
        Standing { folded: self.head.sequence, runs: self.runs, run, unread }
    }

    fn known_calls(&self, run: u32) -> Vec<KnownCall> {
        let named: Vec<&ToolCallId> = self.log.iter().flat_map(calls_of).collect();
        let mut calls: Vec<&Call> = self.calls.values().filter(|call| call.run == run).collect();
        calls.sort_by_key(|call| (call.turn, call.position));
        let known = |call: &&Call| KnownCall {
            tool_call_id: call.id().clone(),
            turn: call.turn,
            named: named.contains(&call.id()),
            asks: call.requested.disposition == Disposition::AwaitApproval,
            dispatched: call.dispatched.is_some(),
            answered: call.closed.is_some(),
        };
        calls.iter().map(known).collect()
    }

    /// Takes over where a thread stands that was folded from records which are not there. A fold that
    /// has the state changes nothing by it.
    pub(crate) fn adopt(&mut self, standing: &Standing) {
        self.runs = self.runs.max(standing.runs);
        self.unread.retain(|input| {
            input.sequence > standing.folded || standing.unread.contains(&input.sequence)
        });
        match &standing.run {
            None => self.run = None,
            Some(active) => {
                let known = self.run.take().filter(|run| run.number == active.number);
                let mut run = known.unwrap_or_else(|| crate::thread::Run::new(active.number));
                run.turns = active.turns;
                run.open = run.open.filter(|open| Some(open.sequence) == active.open.map(|o| o.0));
                self.run = Some(run);
            }
        }
    }
}

fn calls_of(logged: &Logged) -> &[ToolCallId] {
    match logged {
        Logged::Turn { calls, .. } => calls,
        Logged::User { .. } | Logged::Note { .. } => &[],
    }
}

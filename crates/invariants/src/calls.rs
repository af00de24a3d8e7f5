//! Calls: named by a turn, dispatched, started, answered.

use std::collections::{BTreeMap, BTreeSet};

use proto::call::{Disposition, RequestedCall, Start, ToolCall};
use proto::fact::KnownCall;
use proto::ids::{Sequence, ToolCallId};
use proto::observation::Observation;
use proto::tool::Effect;

use crate::rule::{Invariant, Report};
use crate::starts::Starts;
use crate::turns::{TurnId, Turns};

/// Every call of the thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls {
    by_id: BTreeMap<ToolCallId, Call>,
    /// Starts of ids that no call has.
    strays: BTreeMap<ToolCallId, Starts>,
    /// Calls whose records the journal has lost; what comes of them tells of no mistake.
    lost: BTreeSet<ToolCallId>,
    /// Records of older calls may be purged.
    begins_late: bool,
}

/// The end of a turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ending {
    pub(crate) at: Sequence,
    pub(crate) turn: TurnId,
    pub(crate) sealed: bool,
}

#[derive(Clone, Debug)]
struct Call {
    turn: TurnId,
    named: bool,
    waits_for_approval: bool,
    dispatched: Option<Dispatched>,
    starts: Starts,
    answered: Option<Sequence>,
    closed_by_planner: bool,
}

#[derive(Clone, Debug)]
struct Dispatched {
    at: Sequence,
    position: u32,
    effect: Effect,
    tool: String,
    arguments: serde_json::Map<String, serde_json::Value>,
}

impl Call {
    fn of(turn: TurnId) -> Self {
        Self {
            turn,
            named: false,
            waits_for_approval: false,
            dispatched: None,
            starts: Starts::default(),
            answered: None,
            closed_by_planner: false,
        }
    }

    /// The first answer in sequence order counts; later ones are void.
    fn answer(&mut self, at: Sequence) {
        self.answered.get_or_insert(at);
    }
}

impl Calls {
    /// Calls whose records are not in this journal, or no longer.
    pub(crate) fn forgive(&mut self, ids: impl IntoIterator<Item = ToolCallId>) {
        self.lost.extend(ids);
    }

    /// From here on an answer to a call that is not known is late for one whose records were purged.
    pub(crate) fn begins_late(&mut self) {
        self.begins_late = true;
        let known = self.by_id.values_mut().map(|call| &mut call.starts);
        known.chain(self.strays.values_mut()).for_each(Starts::checkpoint);
    }

    /// Runs that are over by the word of a planner have left no call open.
    pub(crate) fn ended(&mut self, at: Sequence, turns: &Turns) {
        for call in self.by_id.values_mut().filter(|call| turns.is_finished(call.turn.run)) {
            call.answer(at);
        }
    }

    /// What was known of the calls of a run when its newest records were lost.
    pub(crate) fn restored(&mut self, at: Sequence, run: u32, known: &[KnownCall]) {
        for one in known {
            let id = &one.tool_call_id;
            let turn = TurnId { run, turn: one.turn };
            let starts = self.strays.remove(id);
            let call = self.by_id.entry(id.clone()).or_insert_with(|| Call::of(turn));
            call.named |= one.named;
            call.waits_for_approval |= one.asks;
            call.starts = starts.unwrap_or_else(|| std::mem::take(&mut call.starts));
            if !one.dispatched {
                call.dispatched = None;
            }
            if one.answered {
                call.answer(at);
            }
            self.lost.insert(id.clone());
        }
    }

    /// A tool call record.
    pub(crate) fn dispatched(&mut self, at: Sequence, record: &ToolCall, report: &mut Report) {
        let id = &record.tool_call_id;
        let turn = TurnId { run: record.run, turn: record.turn };
        let call = self.by_id.entry(id.clone()).or_insert_with(|| Call::of(turn));
        if let Some(first) = &call.dispatched {
            report.breaks(
                Invariant::NoDoubleDispatch,
                format!("{id} was dispatched at {}", first.at),
            );
            return;
        }
        judge_approval(call, record, report);
        call.dispatched = Some(Dispatched {
            at,
            position: record.position,
            effect: record.terms.effect,
            tool: record.tool.to_string(),
            arguments: record.arguments.clone(),
        });
    }

    /// A record of a start subject.
    pub(crate) fn start(&mut self, start: &Start, report: &mut Report) {
        let id = match start {
            Start::Started(started) => &started.tool_call_id,
            Start::Barred(barred) => &barred.tool_call_id,
            Start::Held(_) => return,
        };
        if self.lost.contains(id) {
            return;
        }
        match self.by_id.get_mut(id) {
            Some(call) => {
                let effect = call.dispatched.as_ref().map(|dispatched| dispatched.effect);
                call.starts.push(start, effect, call.answered.is_some(), report);
            }
            None => self.strays.entry(id.clone()).or_default().push(start, None, false, report),
        }
    }

    /// An observation from a worker.
    pub(crate) fn observed(&mut self, at: Sequence, record: &Observation, report: &mut Report) {
        let id = &record.tool_call_id;
        match self.by_id.get_mut(id) {
            Some(call) if call.dispatched.is_some() => call.answer(at),
            Some(call) if self.lost.contains(id) => call.answer(at),
            None if self.begins_late || self.lost.contains(id) => {}
            Some(_) | None => {
                let why = format!("an observation of {id}, which was never dispatched");
                report.breaks(Invariant::OneObservation, why);
            }
        }
    }

    /// An observation from a planner. Answers with the turn of the call.
    pub(crate) fn closed(
        &mut self,
        at: Sequence,
        record: &Observation,
        report: &mut Report,
    ) -> Option<TurnId> {
        let id = &record.tool_call_id;
        let Some(call) = self.by_id.get_mut(id) else {
            if self.lost.contains(id) {
                return None;
            }
            report
                .breaks(Invariant::OneObservation, format!("{id} is closed, nobody asked for it"));
            return None;
        };
        if call.closed_by_planner {
            report.breaks(Invariant::OneObservation, format!("a planner answered {id} before"));
        }
        call.closed_by_planner = true;
        call.answer(at);
        Some(call.turn)
    }

    /// The end of a turn: its reply names these calls.
    pub(crate) fn named(&mut self, end: Ending, calls: &[RequestedCall], report: &mut Report) {
        let turn = end.turn;
        for (position, requested) in calls.iter().enumerate() {
            self.name_one(end, position, requested, report);
        }
        for (id, call) in self.by_id.iter().filter(|(_, call)| call.turn == turn && !call.named) {
            if let Some(dispatched) = &call.dispatched {
                let why = format!("{id}, dispatched at {}, is missing", dispatched.at);
                report.breaks(Invariant::CallsAreNamed, why);
            }
        }
    }

    fn name_one(
        &mut self,
        end: Ending,
        position: usize,
        requested: &RequestedCall,
        report: &mut Report,
    ) {
        let Ending { at, turn, sealed } = end;
        let id = &requested.tool_call_id;
        let call = self.by_id.entry(id.clone()).or_insert_with(|| Call::of(turn));
        if call.named || call.turn != turn {
            report.breaks(Invariant::IdsAreUnique, format!("{id} belongs to {}", call.turn));
            return;
        }
        call.named = true;
        judge_unchanged(call, position, sealed, requested, report);
        match &requested.disposition {
            Disposition::Dispatch => {}
            Disposition::AwaitApproval => call.waits_for_approval = true,
            Disposition::Answered(observation) => {
                call.closed_by_planner = true;
                call.answer(at);
                if observation.tool_call_id != *id {
                    let why = format!("{id} is answered by {}", observation.tool_call_id);
                    report.breaks(Invariant::OneObservation, why);
                }
            }
        }
    }

    /// A sealed turn keeps exactly what was in the journal.
    pub(crate) fn judge_sealed(&self, calls: &[RequestedCall], report: &mut Report) {
        for requested in calls {
            let known = self.by_id.get(&requested.tool_call_id);
            let in_journal = known.is_some_and(|call| call.dispatched.is_some())
                || self.lost.contains(&requested.tool_call_id);
            if requested.disposition == Disposition::Dispatch && !in_journal {
                let why = format!("{} is sealed and was never dispatched", requested.tool_call_id);
                report.breaks(Invariant::CallsAreNamed, why);
            }
        }
    }

    /// Before the next turn or the end of the run, what the last turn named is dispatched.
    pub(crate) fn judge_dispatched(&self, named: &[ToolCallId], report: &mut Report) {
        for id in named {
            let is_missing = self.by_id.get(id).is_some_and(|call| {
                call.dispatched.is_none() && call.answered.is_none() && !call.waits_for_approval
            });
            if is_missing {
                let why = format!("{id} was neither dispatched nor answered");
                report.breaks(Invariant::NamedCallsAreDispatched, why);
            }
        }
    }

    /// Whether something was dispatched for a turn.
    pub(crate) fn any_dispatched(&self, turn: TurnId) -> bool {
        self.by_id.values().any(|call| call.turn == turn && call.dispatched.is_some())
    }

    /// The transcript of a request: each of these calls has its observation within `seen`.
    pub(crate) fn judge_transcript(
        &self,
        named: &[ToolCallId],
        seen: Sequence,
        report: &mut Report,
    ) {
        for id in named {
            let answered = self.by_id.get(id).and_then(|call| call.answered);
            let why = match answered {
                Some(at) if at <= seen => continue,
                Some(at) => format!("{id} was answered at {at}, the turn has seen {seen}"),
                None => format!("{id} is still open"),
            };
            report.breaks(Invariant::TranscriptIsValid, why);
        }
    }

    /// At rest nothing of a finished run is open.
    pub(crate) fn judge_rest(&self, turns: &Turns, report: &mut Report) {
        let open = self.by_id.iter().filter(|(_, call)| call.answered.is_none());
        for (id, call) in open.filter(|(_, call)| turns.is_finished(call.turn.run)) {
            let why = format!("{id} of {} is open for ever", call.turn);
            report.breaks(Invariant::OneObservation, why);
        }
    }
}

fn judge_approval(call: &Call, record: &ToolCall, report: &mut Report) {
    let id = &record.tool_call_id;
    match &record.approved {
        Some(approved) if approved.arguments_hash != record.arguments_hash => {
            report.breaks(Invariant::ApprovalBindsArguments, format!("{id}: other arguments"));
        }
        None if call.waits_for_approval => {
            report.breaks(Invariant::ApprovalBindsArguments, format!("{id}: nobody agreed"));
        }
        Some(_) | None => {}
    }
}

/// A call that was dispatched early keeps place, tool and arguments.
fn judge_unchanged(
    call: &Call,
    position: usize,
    sealed: bool,
    requested: &RequestedCall,
    report: &mut Report,
) {
    let Some(dispatched) = &call.dispatched else { return };
    // A sealed turn leaves out what was not dispatched, so a place may move up, never down.
    let place = usize::try_from(dispatched.position).unwrap_or(usize::MAX);
    let same = (place == position || sealed && place > position)
        && dispatched.tool == requested.tool
        && dispatched.arguments == requested.arguments;
    if !same {
        let why =
            format!("{} differs from its record at {}", requested.tool_call_id, dispatched.at);
        report.breaks(Invariant::CallsAreNamed, why);
    }
}

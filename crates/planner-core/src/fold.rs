//! Records into state. Never fails: a record that makes no sense where it stands changes nothing
//! but the head, because the journal is what happened and the fold has no vote.

use std::time::Duration;

use proto::call::{Disposition, RequestedCall, Start, ToolCall};
use proto::error_code::ErrorCode;
use proto::fact::{
    Fact, RunFinished, SealReason, TurnCompleted, TurnSealed, TurnStarted, Usage, VerifyStep,
};
use proto::ids::{Sequence, ToolCallId};
use proto::input::{Decision, Input, InputBody, Message};
use proto::observation::Observation;
use proto::record::{Placed, Record};
use proto::subject::Leaf;
use proto::time::Timestamp;

use crate::next_turn::answer_text;
use crate::thread::{
    Call, CheckpointMark, Head, Logged, Mode, OpenTurn, Rank, Reply, Run, StartState, Thread,
    Unread, Verifying,
};

/// Records of the fenced chain that a fold knows by their nonces.
const TRAIL: usize = 32;

impl Thread {
    /// Folds a record that was decoded. `leaf` is where it lies.
    pub fn apply(&mut self, leaf: &Leaf, placed: &Placed) {
        if placed.sequence <= self.head.sequence {
            return;
        }
        let is_void = self.is_void(placed);
        self.advance(leaf, placed.sequence, placed.at);
        self.head.nonce = Some(placed.nonce.clone());
        if leaf.is_plan() {
            self.remember(placed);
        }
        match &placed.record {
            Record::Input(input) => self.fold_input(placed.sequence, placed.at, input),
            // It was decided from records that are not there.
            Record::Fact(_) if is_void => {}
            Record::Fact(fact) => self.fold_fact(placed.sequence, fact),
            Record::ToolCall(call) => self.fold_tool_call(call),
            Record::Start(start) => self.fold_start(placed.sequence, start),
            Record::Observation(observation) => self.fold_observation(placed.sequence, observation),
            Record::Tick => {}
        }
    }

    /// Passes over a record that nobody can decode and remembers that it has to be parked.
    pub fn apply_poison(&mut self, leaf: &Leaf, sequence: Sequence, at: Timestamp, why: String) {
        if sequence <= self.head.sequence {
            return;
        }
        self.advance(leaf, sequence, at);
        self.poison.insert(sequence, why);
    }

    /// Whether a record that is about to be folded was decided from records that are not there.
    pub fn is_void(&self, placed: &Placed) -> bool {
        matches!(&placed.record, Record::Fact(fact) if self.grounds.is_void(fact, placed.sequence))
    }

    fn advance(&mut self, leaf: &Leaf, sequence: Sequence, at: Timestamp) {
        if leaf.is_plan() {
            self.plan_last = sequence;
        }
        self.grounds.note(sequence, leaf.is_plan());
        let counted = self.counted(at);
        if let Some(run) = &mut self.run {
            run.taken = run.taken.saturating_add(counted);
        }
        let told_at = if *leaf == Leaf::Tick { self.head.told_at } else { at };
        self.head = Head { sequence, nonce: None, at, told_at };
    }

    fn remember(&mut self, placed: &Placed) {
        if self.trail.len() == TRAIL {
            self.trail.pop_front();
        }
        self.trail.push_back((placed.sequence, placed.nonce.clone()));
    }

    fn fold_input(&mut self, sequence: Sequence, at: Timestamp, input: &Input) {
        if !self.keys.insert(input.key.clone()) {
            return;
        }
        match &input.body {
            InputBody::Message(message) => self.queue(sequence, at, Mode::Enqueue, message),
            InputBody::Steer(message) => self.queue(sequence, at, Mode::Steer, message),
            InputBody::Interrupt(message) => self.queue(sequence, at, Mode::Interrupt, message),
            InputBody::Cancel { .. } => self.fold_cancel(sequence),
            InputBody::Decision(decision) => self.fold_decision(at, decision),
        }
    }

    fn queue(&mut self, sequence: Sequence, at: Timestamp, mode: Mode, message: &Message) {
        self.unread.push(Unread { sequence, at, mode, message: message.clone() });
    }

    fn fold_cancel(&mut self, sequence: Sequence) {
        match &mut self.run {
            Some(run) => run.cancel = Some(sequence),
            None if !self.unread.is_empty() => self.cancel_unstarted = Some(sequence),
            None => {}
        }
    }

    /// The first word in time that fits the call stays.
    fn fold_decision(&mut self, at: Timestamp, decision: &Decision) {
        let Some(call) = self.calls.get_mut(&decision.tool_call_id) else { return };
        let fits = call.asked.as_ref().is_some_and(|asked| {
            let shown = decision.fingerprint.as_ref();
            asked.arguments_hash == decision.arguments_hash
                && shown.is_none_or(|shown| *shown == asked.fingerprint)
                && at <= asked.expires
        });
        if fits && call.decision.is_none() {
            call.decision = Some(decision.clone());
        }
    }

    fn fold_fact(&mut self, sequence: Sequence, fact: &Fact) {
        match fact {
            Fact::TurnStarted(turn) => self.fold_turn_started(sequence, turn),
            Fact::TurnCompleted(turn) => self.fold_turn_completed(turn),
            Fact::TurnSealed(turn) => self.fold_turn_sealed(turn),
            Fact::CallClosed { observation } => self.close(observation),
            Fact::ApprovalAsked(asked) => {
                if let Some(call) = self.calls.get_mut(&asked.tool_call_id) {
                    call.asked.get_or_insert_with(|| asked.clone());
                }
            }
            Fact::RunFinished(finished) => self.fold_run_finished(finished),
            Fact::Parked { sequence, .. } => {
                self.poison.remove(sequence);
            }
            Fact::Checkpoint(checkpoint) => {
                self.adopt(&checkpoint.standing);
                let (runs, folded) = (checkpoint.standing.runs, checkpoint.standing.folded);
                self.checkpoint = Some(CheckpointMark { runs, folded, at: self.head.at });
            }
            Fact::Restored(restored) => {
                self.finished = restored.finished.clone().or_else(|| self.finished.take());
                self.adopt(&restored.standing);
            }
        }
    }

    fn fold_turn_started(&mut self, sequence: Sequence, turn: &TurnStarted) {
        match &self.run {
            None if turn.run > self.runs => self.begin_run(turn.run),
            Some(run) if run.number == turn.run => {}
            None | Some(_) => return,
        }
        self.agent = Some(turn.agent.clone());
        self.read_inputs(turn);
        self.read_notes(turn);
        self.fold_verification(turn.verify);
        let Some(run) = &mut self.run else { return };
        run.turns = turn.turn;
        if !turn.recalled.is_empty() {
            run.recalled.clone_from(&turn.recalled);
        }
        run.open = Some(OpenTurn { sequence, started: turn.clone(), dispatched: Vec::new() });
    }

    /// The answer in the journal is the draft when its verification begins; a turn outside of it, such
    /// as one that reads new words of the user, ends it.
    fn fold_verification(&mut self, step: Option<VerifyStep>) {
        let draft = || answer_text(self).unwrap_or_default();
        let known = self.run.as_ref().and_then(|run| run.verifying.as_ref());
        let verifying = step.map(|step| Verifying {
            step,
            draft: known.map_or_else(draft, |known| known.draft.clone()),
        });
        if let Some(run) = &mut self.run {
            run.verifying = verifying;
        }
    }

    /// A cancel that came between the input and the first turn means the run that begins here.
    fn begin_run(&mut self, number: u32) {
        self.runs = number;
        let mut run = Run::new(number);
        run.cancel = self.cancel_unstarted.take();
        self.run = Some(run);
    }

    /// The first start of a run's first turn reads all that waits, a later one what was meant for
    /// the active run.
    fn read_inputs(&mut self, turn: &TurnStarted) {
        let all = turn.turn == 1 && turn.start == 1;
        let is_read = |u: &Unread| u.sequence <= turn.seen && (all || u.mode != Mode::Enqueue);
        for input in self.take_unread(is_read) {
            self.log_user(turn.run, input);
        }
    }

    fn take_unread(&mut self, is_taken: impl Fn(&Unread) -> bool) -> Vec<Unread> {
        let (taken, left) = std::mem::take(&mut self.unread).into_iter().partition(is_taken);
        self.unread = left;
        taken
    }

    fn log_user(&mut self, run_number: u32, input: Unread) {
        if let Some(run) = &mut self.run {
            run.approved.extend(input.message.approve);
            run.complexity = input.message.complexity.or(run.complexity);
        }
        self.log.push(Logged::User { run: run_number, text: input.message.text });
    }

    fn read_notes(&mut self, turn: &TurnStarted) {
        let (told, later) =
            std::mem::take(&mut self.notes).into_iter().partition(|(at, _)| *at <= turn.seen);
        self.notes = later;
        let told: Vec<(Sequence, String)> = told;
        self.log.extend(told.into_iter().map(|(_, text)| Logged::Note { text }));
        if let Some(text) = turn.note.clone().filter(|_| turn.start == 1) {
            self.log.push(Logged::Note { text });
            if let Some(run) = &mut self.run
                && run.verifying.as_ref().map(|verifying| verifying.step) == turn.verify
            {
                run.repairs = run.repairs.saturating_add(1);
            }
        }
    }

    fn fold_turn_completed(&mut self, turn: &TurnCompleted) {
        if !self.is_open(turn.run, turn.started) {
            return;
        }
        if let Some(counted) = &turn.counted {
            self.ratios.learn(counted);
        }
        let named = self.name_calls(turn.run, turn.turn, &turn.calls);
        self.log.push(Logged::Turn {
            run: turn.run,
            turn: turn.turn,
            text: turn.text.clone(),
            reasoning: turn.reasoning.clone(),
            opaque: turn.opaque.clone(),
            calls: named.clone(),
        });
        self.end_turn(Reply { calls: named, ..Reply::of(turn) }, turn.usage);
    }

    fn fold_turn_sealed(&mut self, turn: &TurnSealed) {
        if !self.is_open(turn.run, turn.started) {
            return;
        }
        let calls = self.name_calls(turn.run, turn.turn, &turn.calls);
        self.log.push(Logged::Turn {
            run: turn.run,
            turn: turn.turn,
            text: turn.text.clone(),
            reasoning: turn.reasoning.clone(),
            opaque: None,
            calls: calls.clone(),
        });
        if let (SealReason::HandedBack, Some(run)) = (turn.why, &mut self.run) {
            run.handed_back = run.handed_back.saturating_add(1);
        }
        let text = turn.text.clone();
        let reply = Reply { turn: turn.turn, text, calls, sealed: true, confidence: None };
        self.end_turn(reply, turn.usage);
    }

    /// Whether this is the turn whose reply is awaited.
    fn is_open(&self, run: u32, started: Sequence) -> bool {
        self.run.as_ref().is_some_and(|active| {
            active.number == run && active.open.as_ref().is_some_and(|o| o.sequence == started)
        })
    }

    fn end_turn(&mut self, reply: Reply, usage: Usage) {
        let Some(active) = &mut self.run else { return };
        active.open = None;
        active.usage = active.usage.plus(usage);
        let calls = u32::try_from(reply.calls.len()).unwrap_or(u32::MAX);
        active.calls = active.calls.saturating_add(calls);
        active.reply = Some(reply);
    }

    /// Makes the calls of a reply known; answers with those that are its own. An id that an earlier
    /// turn or an earlier place of the reply has used names no second call.
    fn name_calls(&mut self, run: u32, turn: u32, calls: &[RequestedCall]) -> Vec<ToolCallId> {
        let mut named = Vec::with_capacity(calls.len());
        for (position, requested) in calls.iter().enumerate() {
            let id = &requested.tool_call_id;
            let place = self.calls.get(id).map(|call| (call.run, call.turn));
            if place.is_some_and(|place| place != (run, turn)) || named.contains(id) {
                continue;
            }
            named.push(id.clone());
            let position = u32::try_from(position).unwrap_or(u32::MAX);
            self.name_call(run, turn, position, requested);
        }
        named
    }

    /// Makes a call known, or completes what an early dispatch already told of it.
    fn name_call(&mut self, run: u32, turn: u32, position: u32, requested: &RequestedCall) {
        let id = requested.tool_call_id.clone();
        let call = self
            .calls
            .entry(id)
            .or_insert_with(|| Call::new(run, turn, position, requested.clone()));
        call.requested = requested.clone();
        call.position = position;
        if let (Disposition::Answered(observation), None) = (&requested.disposition, &call.closed) {
            call.closed = Some(observation.as_ref().clone());
        }
    }

    fn fold_tool_call(&mut self, dispatched: &ToolCall) {
        let id = dispatched.tool_call_id.clone();
        let call = self.calls.entry(id.clone()).or_insert_with(|| {
            let requested = requested_of(dispatched);
            Call::new(dispatched.run, dispatched.turn, dispatched.position, requested)
        });
        call.dispatched.get_or_insert_with(|| dispatched.clone());
        if let Some(open) = self.run.as_mut().and_then(|run| run.open.as_mut())
            && (open.started.run, open.started.turn) == (dispatched.run, dispatched.turn)
            && !open.dispatched.contains(&id)
        {
            open.dispatched.push(id);
        }
    }

    fn fold_start(&mut self, sequence: Sequence, start: &Start) {
        let (id, state) = match start {
            Start::Started(started) => {
                (&started.tool_call_id, StartState::Started { sequence, started: started.clone() })
            }
            Start::Barred(barred) => (&barred.tool_call_id, StartState::Barred),
            Start::Held(_) => return,
        };
        let Some(call) = self.calls.get_mut(id) else { return };
        call.start = match (&call.start, state) {
            // A planner bars what has not started; a worker bars a start that it has checked.
            (StartState::Started { .. } | StartState::BarredAfterCheck, StartState::Barred) => {
                StartState::BarredAfterCheck
            }
            (_, state) => state,
        };
    }

    fn fold_observation(&mut self, sequence: Sequence, observation: &Observation) {
        let Some(call) = self.calls.get_mut(&observation.tool_call_id) else { return };
        let rank = call.rank(observation);
        let Some(closed) = &call.closed else {
            call.closed = Some(observation.clone());
            return;
        };
        if rank == Rank::Known {
            return;
        }
        self.late = self.late.saturating_add(1);
        if call.late.is_some() {
            return;
        }
        call.late = Some(observation.clone());
        let in_doubt = Some(ErrorCode::InDoubt);
        if closed.code == in_doubt && observation.code != in_doubt {
            let note = late_note(&call.requested.tool, observation);
            self.notes.push((sequence, note));
        }
    }

    /// The first closer in sequence order wins.
    fn close(&mut self, observation: &Observation) {
        if let Some(call) = self.calls.get_mut(&observation.tool_call_id)
            && call.closed.is_none()
        {
            call.closed = Some(observation.clone());
        }
    }

    fn fold_run_finished(&mut self, finished: &RunFinished) {
        match &self.run {
            None if finished.run > self.runs => self.fold_unstarted(finished),
            Some(run) if run.number == finished.run => {
                self.run = None;
                self.finished = Some(Box::new(finished.clone()));
                let is_read = |u: &Unread| u.sequence <= finished.seen && u.mode != Mode::Enqueue;
                for input in self.take_unread(is_read) {
                    self.log_user(finished.run, input);
                }
            }
            None | Some(_) => {}
        }
    }

    /// A run that ended before a turn of it began: its inputs are read by its end.
    fn fold_unstarted(&mut self, finished: &RunFinished) {
        self.runs = finished.run;
        self.finished = Some(Box::new(finished.clone()));
        for input in self.take_unread(|u| u.sequence <= finished.seen) {
            self.log_user(finished.run, input);
        }
        let waits = !self.unread.is_empty();
        self.cancel_unstarted = self.cancel_unstarted.filter(|at| waits && *at > finished.seen);
        self.log.push(Logged::Note { text: finished.answer.clone() });
    }
}

fn late_note(tool: &str, observation: &Observation) -> String {
    let verdict = if observation.is_ok() { "it succeeded" } else { "it failed" };
    format!(
        "The outcome of {tool} (call {}), which was in doubt, is known: {verdict}. Its result: {}",
        observation.tool_call_id, observation.content
    )
}

/// What a dispatched call tells of the wish behind it, before the turn names it.
pub fn requested_of(call: &ToolCall) -> RequestedCall {
    RequestedCall {
        tool_call_id: call.tool_call_id.clone(),
        tool: call.tool.to_string(),
        arguments: call.arguments.clone(),
        opaque: call.opaque.clone(),
        terms: Some(call.terms.clone()),
        disposition: Disposition::Dispatch,
        corrected: Vec::new(),
        asked_because: None,
    }
}

impl Run {
    pub(crate) fn new(number: u32) -> Self {
        Self {
            number,
            taken: Duration::ZERO,
            turns: 0,
            open: None,
            reply: None,
            approved: std::collections::BTreeSet::new(),
            complexity: None,
            cancel: None,
            usage: Usage::default(),
            calls: 0,
            repairs: 0,
            handed_back: 0,
            verifying: None,
            recalled: Vec::new(),
        }
    }
}

impl Call {
    fn new(run: u32, turn: u32, position: u32, requested: RequestedCall) -> Self {
        Self {
            requested,
            run,
            turn,
            position,
            asked: None,
            decision: None,
            dispatched: None,
            start: StartState::None,
            closed: None,
            late: None,
        }
    }
}

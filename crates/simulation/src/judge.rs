//! Judges a world while it runs: the named invariants after every record, the ledger's rules at
//! every effect, and what a model is shown at every request.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use invariants::Checker;
use ports::journal::Stored;
use proto::call::{Disposition, RequestedCall, Start, ToolCall};
use proto::envelope::{DecodeError, Envelope};
use proto::fact::{Fact, TurnStarted};
use proto::grounds::Grounds;
use proto::ids::{InputKey, Sequence, ThreadRef, ToolCallId};
use proto::model::ModelRequest;
use proto::observation::{Observation, Receipt};
use proto::record::{Placed, Record};
use proto::time::Timestamp;
use proto::tool::Effect;
use proto::transcript::Entry;

use crate::processes::GRACE;
use crate::script::seed_of;
use crate::shared::Violation;
use crate::tools::{Effects, Ledger};

/// One thread.
#[derive(Default)]
struct ThreadJudge {
    checker: Checker,
    grounds: Grounds,
    is_active: bool,
    finished: u32,
    inputs: u32,
    calls: u32,
    open: Option<TurnStarted>,
    ticks: BTreeSet<Sequence>,
    /// Of inputs that were lost and that nothing in the journal knows of.
    keys: BTreeSet<InputKey>,
    ever_lost: BTreeSet<InputKey>,
    /// A record that only newer processes may act on lies here.
    too_new: Option<Sequence>,
    poison: Vec<Sequence>,
}

/// One call, whatever its thread: ids are drawn from a space that worlds do not exhaust.
#[derive(Default)]
struct CallJudge {
    effect: Option<Effect>,
    answer: Option<Observation>,
    /// The journal says that it never started.
    never: Option<Sequence>,
    /// Records of it were lost: what the journal says of it may be said again, and differently.
    forgiven: bool,
}

/// The calls that a record tells of.
fn calls_of(record: &Record) -> Vec<ToolCallId> {
    let ids = |calls: &[RequestedCall]| calls.iter().map(|c| c.tool_call_id.clone()).collect();
    match record {
        Record::ToolCall(call) => vec![call.tool_call_id.clone()],
        Record::Observation(seen) => vec![seen.tool_call_id.clone()],
        Record::Fact(Fact::CallClosed { observation }) => vec![observation.tool_call_id.clone()],
        Record::Fact(Fact::TurnCompleted(turn)) => ids(&turn.calls),
        Record::Fact(Fact::TurnSealed(turn)) => ids(&turn.calls),
        Record::Start(Start::Started(started)) => vec![started.tool_call_id.clone()],
        Record::Start(Start::Barred(barred)) => vec![barred.tool_call_id.clone()],
        Record::Start(Start::Held(_)) | Record::Fact(_) | Record::Input(_) | Record::Tick => {
            Vec::new()
        }
    }
}

/// All threads of a world.
#[derive(Default)]
pub struct Judge {
    threads: BTreeMap<ThreadRef, ThreadJudge>,
    calls: BTreeMap<ToolCallId, CallJudge>,
}

/// What one record means to the world.
pub struct Judged {
    /// What it breaks.
    pub found: Vec<Violation>,
    /// The record, if it can be read.
    pub record: Option<Record>,
}

impl Judge {
    /// Records were lost; a thread is judged anew by what is left of it.
    pub fn lost(&mut self, place: &ThreadRef, lost: &[Arc<Stored>], left: &[Stored]) {
        // What was lost before is still lost.
        let ever_lost = self.threads.remove(place).map(|before| before.ever_lost);
        let ever_lost = ever_lost.unwrap_or_default();
        let keys = ever_lost.clone();
        let mut thread = ThreadJudge { keys, ever_lost, ..ThreadJudge::default() };
        let forgiven = self.calls.iter().filter(|(_, call)| call.forgiven);
        thread.checker.lost(forgiven.map(|(id, _)| id.clone()), []);
        let mut keys = Vec::new();
        let own = lost.iter().filter(|stored| stored.subject.thread == *place);
        for placed in own.filter_map(|stored| stored.placed().ok()) {
            for id in calls_of(&placed.record) {
                let call = self.call(&id);
                (call.forgiven, call.never, call.answer) = (true, None, None);
                thread.checker.lost([id], []);
            }
            if let Record::Input(input) = placed.record {
                keys.push(input.key);
            }
        }
        for stored in left {
            match stored.placed() {
                Ok(placed) => {
                    // Judged when it was written.
                    drop(thread.checker.push(&placed));
                    thread.note(&placed);
                }
                Err(error) => thread.unreadable(stored.sequence, &error),
            }
        }
        // Nothing of what is left knows of them.
        thread.keys.extend(keys.iter().cloned());
        thread.ever_lost.extend(keys);
        self.threads.insert(place.clone(), thread);
    }

    /// Takes a record that was just written.
    pub fn stored(&mut self, stored: &Stored, ledger: &Ledger) -> Judged {
        let thread = self.threads.entry(stored.subject.thread.clone()).or_default();
        let envelope = match Envelope::decode(&stored.payload) {
            Ok(envelope) => envelope,
            Err(error) => {
                thread.unreadable(stored.sequence, &error);
                return Judged { found: Vec::new(), record: None };
            }
        };
        let mut found = Vec::new();
        if let (Some(at), true) = (thread.too_new, stored.subject.leaf.is_plan()) {
            let why = format!("{} was written after the unreadable {at}", stored.sequence);
            found.push(Violation::new("too_new_decides_nothing", why));
        }
        let placed = Placed {
            sequence: stored.sequence,
            at: stored.at,
            nonce: envelope.nonce,
            record: envelope.body,
        };
        let broken = thread.checker.push(&placed);
        found.extend(broken.into_iter().map(|v| Violation::new(v.invariant, v.to_string())));
        found.extend(thread.judge_takeover(&placed));
        thread.note(&placed);
        found.extend(self.answers(&placed, ledger));
        Judged { found, record: Some(placed.record) }
    }

    /// First answers count; one that says "never started" is held against the ledger.
    fn answers(&mut self, placed: &Placed, ledger: &Ledger) -> Vec<Violation> {
        match &placed.record {
            Record::ToolCall(call) => {
                self.call(&call.tool_call_id).effect = Some(call.terms.effect);
                Vec::new()
            }
            Record::Observation(observation) => self.answered(placed.sequence, observation, ledger),
            Record::Fact(Fact::CallClosed { observation }) => {
                self.answered(placed.sequence, observation, ledger)
            }
            Record::Fact(Fact::TurnCompleted(turn)) => {
                self.named(placed.sequence, &turn.calls, ledger)
            }
            Record::Fact(_) | Record::Input(_) | Record::Start(_) | Record::Tick => Vec::new(),
        }
    }

    fn named(&mut self, at: Sequence, calls: &[RequestedCall], ledger: &Ledger) -> Vec<Violation> {
        let mut found = Vec::new();
        for call in calls {
            if let Disposition::Answered(observation) = &call.disposition {
                found.extend(self.answered(at, observation, ledger));
            }
        }
        found
    }

    fn call(&mut self, id: &ToolCallId) -> &mut CallJudge {
        self.calls.entry(id.clone()).or_default()
    }

    fn answered(
        &mut self,
        at: Sequence,
        observation: &Observation,
        ledger: &Ledger,
    ) -> Vec<Violation> {
        let id = &observation.tool_call_id;
        let call = self.call(id);
        if call.forgiven {
            return Vec::new();
        }
        call.answer.get_or_insert_with(|| observation.clone());
        let needs_start = call.effect.is_some_and(Effect::needs_start);
        if observation.receipt == Some(Receipt::NeverStarted) && needs_start {
            call.never = Some(at);
        }
        let effects = ledger.of(id);
        let mut found = Vec::new();
        if call.never.is_some() && !effects.began.is_empty() {
            let why = format!("{id} never started, says {at}; it did");
            found.push(Violation::new("receipts_are_true", why));
        }
        if observation.is_ok() && needs_start && effects.began.is_empty() {
            let why = format!("{id} succeeded, says {at}; it never began");
            found.push(Violation::new("receipts_are_true", why));
        }
        found
    }

    /// An attempt begins its effect.
    pub fn began(
        &mut self,
        thread: &ThreadRef,
        call: &ToolCall,
        attempt: u32,
        effects: &Effects,
        now: Timestamp,
    ) -> Vec<Violation> {
        let id = &call.tool_call_id;
        let mut found = Vec::new();
        let effect = call.terms.effect;
        if effect == Effect::Irreversible && effects.began.len() > 1 {
            let why = format!("{id} of {thread} began {} times", effects.began.len());
            found.push(Violation::new("irreversible_once", why));
        }
        if effect == Effect::Checkable && effects.began.len() > 1 && !effects.landed.is_empty() {
            let why = format!("{id} of {thread} began again after its effect had landed");
            found.push(Violation::new("checkable_once", why));
        }
        // A claim may take half a grace between its look at the time and the effect.
        let claim = if effect.needs_start() { GRACE / 2 } else { Duration::ZERO };
        if attempt == 1 && now > call.start_by.after(claim) {
            let late = now.since(call.start_by).as_millis();
            let why = format!("{id} of {thread} began {late} ms after its start_by");
            found.push(Violation::new("nothing_starts_late", why));
        }
        if self.call(id).never.is_some() {
            let why = format!("{id} of {thread} began after the journal said never");
            found.push(Violation::new("receipts_are_true", why));
        }
        found
    }

    /// A model is asked.
    pub fn asked(&self, request: &ModelRequest) -> Vec<Violation> {
        let mut found = Vec::new();
        let mut seen = BTreeSet::new();
        let mut read = BTreeSet::new();
        for entry in request.transcript.entries() {
            if let Entry::User { text } = entry
                && seed_of(text).is_some()
                && !read.insert(text)
            {
                found.push(Violation::new("inputs_are_read_once", text.clone()));
            }
            let Entry::Turn(turn) = entry else { continue };
            if turn.calls.is_empty() && turn.text.trim().is_empty() {
                found.push(Violation::new("request_is_valid", "a reply without words and calls"));
            }
            for call in &turn.calls {
                let id = call.tool_call_id();
                if !seen.insert(id.clone()) {
                    found.push(Violation::new("request_is_valid", format!("{id} is there twice")));
                }
                found.extend(self.shown(id, call.observation()));
            }
        }
        if !request.transcript.entries().iter().any(|entry| matches!(entry, Entry::User { .. })) {
            found.push(Violation::new("request_is_valid", "no user has spoken"));
        }
        found
    }

    /// The model reads the first answer in sequence order and no other.
    fn shown(&self, id: &ToolCallId, observation: &Observation) -> Option<Violation> {
        let call = self.calls.get(id);
        if call.is_some_and(|call| call.forgiven) {
            return None;
        }
        let answer = call.and_then(|call| call.answer.as_ref());
        let same = answer.is_some_and(|answer| answer == observation);
        (!same).then(|| {
            let why = format!("{id}: the model reads {observation:?}, the journal says {answer:?}");
            Violation::new("first_answer_is_shown", why)
        })
    }

    /// The effect of an attempt is there.
    pub fn landed(call: &ToolCall, effects: &Effects) -> Option<Violation> {
        let times = effects.landed.len();
        let matters = call.terms.effect.needs_start() && times > 1;
        let why = || format!("the effect of {} landed {times} times", call.tool_call_id);
        matters.then(|| Violation::new("effects_land_once", why()))
    }

    /// Whether this is the answer of its call that counts.
    pub fn is_first_answer(&self, seen: &Observation) -> bool {
        let call = self.calls.get(&seen.tool_call_id);
        call.is_some_and(|call| call.answer.as_ref() == Some(seen))
    }

    /// Whether a run of the thread is active.
    pub fn is_active(&self, thread: &ThreadRef) -> bool {
        self.threads.get(thread).is_some_and(|thread| thread.is_active)
    }

    /// What a quiet thread has left undone. A thread that this version may not act on rests as it is.
    pub fn at_rest(&self) -> Vec<(ThreadRef, Vec<Violation>)> {
        let readable = self.threads.iter().filter(|(_, thread)| thread.too_new.is_none());
        let judged = readable.map(|(place, thread)| {
            let mut found: Vec<_> = thread.checker.at_rest();
            found.truncate(3);
            let found = found.into_iter().map(|v| Violation::new(v.invariant, v.to_string()));
            (place.clone(), found.collect())
        });
        judged.collect()
    }

    /// Whether newer processes have to come before the thread goes on.
    pub fn is_too_new(&self, thread: &ThreadRef) -> bool {
        self.threads.get(thread).is_some_and(|thread| thread.too_new.is_some())
    }

    /// Runs that ended, inputs that came, calls that were dispatched.
    pub fn totals(&self) -> [u64; 3] {
        let sum = |pick: fn(&ThreadJudge) -> u32| {
            self.threads.values().map(|thread| u64::from(pick(thread))).sum()
        };
        [sum(|thread| thread.finished), sum(|thread| thread.inputs), sum(|thread| thread.calls)]
    }
}

impl ThreadJudge {
    fn unreadable(&mut self, at: Sequence, error: &DecodeError) {
        match error {
            DecodeError::TooNew { .. } => self.too_new = self.too_new.or(Some(at)),
            DecodeError::Malformed(_) => self.poison.push(at),
        }
    }

    /// A turn is started again by its owner, by whoever holds the delivery that it was held by, or
    /// by a tick past its deadline. Clocks are measured, so a few seconds do not count.
    fn judge_takeover(&self, placed: &Placed) -> Option<Violation> {
        let Record::Fact(Fact::TurnStarted(turn)) = &placed.record else { return None };
        if turn.seen >= placed.sequence {
            return None;
        }
        let open = self.open.as_ref()?;
        let overdue = placed.at.after(Duration::from_secs(5)) >= open.deadline;
        let allowed = turn.owner == open.owner
            || turn.held_by == open.held_by
            || (self.ticks.contains(&turn.held_by) && overdue);
        let why =
            || format!("{} took over on {}, it was {}", turn.owner, turn.held_by, open.held_by);
        (!allowed).then(|| Violation::new("takeover_is_allowed", why()))
    }

    fn note(&mut self, placed: &Placed) {
        let (at, record) = (placed.sequence, &placed.record);
        let is_void = matches!(record, Record::Fact(fact) if self.grounds.is_void(fact, at));
        self.grounds.note(at, matches!(record, Record::Fact(_) | Record::ToolCall(_)));
        match &placed.record {
            Record::Fact(_) if is_void => {}
            Record::Input(_) => self.inputs += 1,
            Record::ToolCall(_) => self.calls += 1,
            Record::Fact(Fact::TurnStarted(turn)) => {
                self.is_active = true;
                self.open = Some(turn.clone());
            }
            Record::Fact(Fact::TurnCompleted(_) | Fact::TurnSealed(_)) => self.open = None,
            Record::Tick => {
                self.ticks.insert(placed.sequence);
            }
            Record::Fact(Fact::RunFinished(_)) => {
                self.open = None;
                self.is_active = false;
                self.finished += 1;
            }
            Record::Fact(Fact::Parked { sequence, .. }) => {
                self.poison.retain(|at| at != sequence);
            }
            Record::Fact(Fact::Restored(restored)) => {
                self.open = None;
                self.is_active = restored.standing.run.is_some();
                self.finished += u32::from(restored.finished.is_some());
                // From here on an input that was lost is known again by its key.
                self.checker.lost([], std::mem::take(&mut self.keys));
            }
            Record::Fact(_) | Record::Start(_) | Record::Observation(_) => {}
        }
    }
}

//! One reply while it streams: what was said, what was asked for, and what may go out early.

use std::collections::BTreeMap;

use proto::agent::EarlyDispatch;
use proto::call::{Disposition, RequestedCall, ToolCall};
use proto::fact::{SealReason, TurnCompleted, TurnSealed, Usage};
use proto::ids::{Sequence, ToolCallId};
use proto::model::{BrokenCall, ReadyCall, ReplyEnd};
use proto::time::Timestamp;

use crate::accept::{Judge, void_finish_beside_others};
use crate::calls::{CallPlace, tool_call};
use crate::view::Spans;

/// A reply while it streams.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveTurn {
    run: u32,
    turn: u32,
    started: Sequence,
    text: String,
    reasoning: String,
    calls: BTreeMap<u32, RequestedCall>,
    dispatched: Vec<ToolCallId>,
}

impl LiveTurn {
    /// A reply that has not begun.
    pub fn new(run: u32, turn: u32, started: Sequence) -> Self {
        Self {
            run,
            turn,
            started,
            text: String::new(),
            reasoning: String::new(),
            calls: BTreeMap::new(),
            dispatched: Vec::new(),
        }
    }

    /// More of what the model says; answers with the offset of the new part, in bytes.
    pub fn say(&mut self, delta: &str) -> usize {
        let offset = self.text.len();
        self.text.push_str(delta);
        offset
    }

    /// More of what it thinks; answers with the offset of the new part, in bytes.
    pub fn think(&mut self, delta: &str) -> usize {
        let offset = self.reasoning.len();
        self.reasoning.push_str(delta);
        offset
    }

    /// What was said and thought so far.
    pub fn words(&self) -> (&str, &str) {
        (&self.text, &self.reasoning)
    }

    /// Whether the reply has left no trace yet, so that the request may simply be repeated.
    pub fn is_untouched(&self) -> bool {
        self.dispatched.is_empty()
    }

    /// Forgets the reply so far, to ask again.
    pub fn reset(&mut self) {
        *self = Self::new(self.run, self.turn, self.started);
    }

    /// A call whose arguments have closed. Answers with the record to append now, if it may go out
    /// before the reply has ended.
    pub fn call_ready(
        &mut self,
        judge: &Judge<'_>,
        id: ToolCallId,
        call: ReadyCall,
        now: Timestamp,
        spans: Spans,
    ) -> Option<ToolCall> {
        let position = call.position;
        let earlier = u32::try_from(self.calls.len()).unwrap_or(u32::MAX);
        let requested = judge.ready(id, earlier, call);
        let early = may_go_early(judge.agent.early_dispatch, &requested);
        let place = CallPlace { run: self.run, turn: self.turn, position };
        let record =
            early.then(|| tool_call(judge.thread, place, &requested, None, now, spans)).flatten();
        self.calls.insert(position, requested);
        record
    }

    /// A call that cannot run.
    pub fn call_broken(&mut self, judge: &Judge<'_>, id: ToolCallId, call: BrokenCall) {
        let position = call.position;
        self.calls.insert(position, judge.broken(id, call));
    }

    /// An early record is in the journal.
    pub fn dispatched(&mut self, id: ToolCallId) {
        self.dispatched.push(id);
    }

    /// The reply ended: the record that names every call of the turn.
    pub fn complete(self, end: ReplyEnd, asked_model: &str) -> TurnCompleted {
        let mut calls: Vec<RequestedCall> = self.calls.into_values().collect();
        void_finish_beside_others(&mut calls);
        TurnCompleted {
            run: self.run,
            turn: self.turn,
            started: self.started,
            text: self.text,
            reasoning: self.reasoning,
            calls,
            model: end.model.unwrap_or_else(|| asked_model.to_owned()),
            usage: end.usage.unwrap_or_default(),
            confidence: end.confidence,
            opaque: end.opaque,
        }
    }

    /// The reply was cut: the record that keeps exactly the calls that are in the journal.
    pub fn seal(self, why: SealReason) -> TurnSealed {
        let Self { dispatched, calls, .. } = self;
        let calls = calls.into_values().filter(|call| dispatched.contains(&call.tool_call_id));
        TurnSealed {
            run: self.run,
            turn: self.turn,
            started: self.started,
            text: self.text,
            reasoning: self.reasoning,
            calls: calls.collect(),
            why,
            usage: Usage::default(),
        }
    }
}

fn may_go_early(policy: EarlyDispatch, call: &RequestedCall) -> bool {
    let ready = matches!(call.disposition, Disposition::Dispatch);
    let safe = call.terms.as_ref().is_some_and(|terms| terms.effect.is_safe_early());
    match policy {
        EarlyDispatch::Off => false,
        EarlyDispatch::Safe => ready && safe,
        EarlyDispatch::All => ready,
    }
}

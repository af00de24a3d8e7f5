//! What a reader of a thread sees: the journal in the order it was written, told for people and
//! programs outside. The names are stable.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::call::{Disposition, Start};
use crate::error_code::ErrorCode;
use crate::fact::{
    EndReason, Fact, Outcome, RunFinished, SealReason, Usage, Verification, VerifyStep,
};
use crate::ids::{AgentName, ArgumentsHash, Sequence, ThreadId, ToolCallId};
use crate::input::InputBody;
use crate::live::Channel;
use crate::notice::{Deadline, Next};
use crate::observation::{Observation, Receipt};
use crate::phase::{Phase, Waiting};
use crate::record::{Placed, Record};
use crate::time::Timestamp;
use crate::tool::Effect;

/// One event with its place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadEvent {
    /// The thread.
    pub thread: ThreadId,
    /// The record it tells of; for live text the `turn_started` it belongs to.
    pub sequence: Sequence,
    /// When, in server time; absent for live text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// What.
    #[serde(flatten)]
    pub event: Event,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// An input was accepted.
    Input {
        /// `message`, `steer`, `interrupt`, `cancel` or `decision`.
        input: String,
        /// Its words, when it has some.
        text: String,
    },
    /// A model request begins.
    TurnStarted {
        /// The run.
        run: u32,
        /// The turn.
        turn: u32,
        /// Which start of the turn.
        start: u32,
        /// Who answers.
        agent: AgentName,
        /// The step of the answer's verification that it belongs to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        verify: Option<VerifyStep>,
        /// Whether an answer of it is a draft: it is verified before the answer is given.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        draft: bool,
    },
    /// The run entered a phase, or waits for something else in it; told before the event that led
    /// there.
    Phase {
        /// The phase.
        phase: Phase,
        /// What it waits for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        waiting_for: Option<Waiting>,
    },
    /// A piece of the reply while it streams.
    Delta {
        /// The turn.
        turn: u32,
        /// Which channel.
        channel: Channel,
        /// Where it begins in what this turn said in this channel, in bytes. Lower than what was told
        /// so far: the stream broke and the reply was asked for again; what lies from here on is void.
        offset: u64,
        /// The piece.
        delta: String,
        /// Whether it belongs to a draft, as the start of its turn says: the answer comes later.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        draft: bool,
    },
    /// A deadline ran out. The model is told nothing of it, other than the answer of a call that was
    /// closed.
    DeadlinePassed {
        /// Which.
        deadline: Deadline,
        /// What happens.
        next: Next,
        /// The turn, when it is one of a reply.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn: Option<u32>,
        /// The call, when it is the deadline of one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_call_id: Option<ToolCallId>,
    },
    /// A model request waits before it is made, and why; without words it waits no more.
    Waiting {
        /// The turn.
        turn: u32,
        /// Why, for people.
        because: String,
        /// How long at most from now, in milliseconds, when that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at_most_ms: Option<u64>,
    },
    /// The run goes on without long-term memory.
    WithoutMemory {
        /// The turn.
        turn: u32,
        /// Why, for people.
        because: String,
    },
    /// The reply is complete.
    TurnCompleted {
        /// The run.
        run: u32,
        /// The turn.
        turn: u32,
        /// What the model said.
        text: String,
        /// Ids of its calls.
        calls: Vec<ToolCallId>,
        /// What it cost.
        usage: Usage,
    },
    /// The reply was cut short.
    TurnSealed {
        /// The run.
        run: u32,
        /// The turn.
        turn: u32,
        /// The text so far.
        text: String,
        /// Ids of the calls it keeps.
        calls: Vec<ToolCallId>,
        /// Why.
        why: SealReason,
    },
    /// A call was dispatched.
    ToolCall {
        /// The call.
        tool_call_id: ToolCallId,
        /// The turn.
        turn: u32,
        /// The tool.
        tool: String,
        /// Its arguments.
        arguments: Map<String, Value>,
        /// What repeating does.
        effect: Effect,
    },
    /// An attempt with an effect began.
    ToolStarted {
        /// The call.
        tool_call_id: ToolCallId,
        /// The attempt.
        attempt: u32,
    },
    /// A call can no longer start.
    ToolBarred {
        /// The call.
        tool_call_id: ToolCallId,
    },
    /// A call was answered.
    Observation {
        /// The call.
        tool_call_id: ToolCallId,
        /// Absent on success.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<ErrorCode>,
        /// What the model reads.
        content: String,
        /// How far it had come.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        receipt: Option<Receipt>,
        /// How long the attempt took.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
        /// Whether it came after the call was closed: it is shown, and changes nothing.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        late: bool,
    },
    /// A person is asked.
    ApprovalAsked {
        /// The call.
        tool_call_id: ToolCallId,
        /// The tool.
        tool: String,
        /// What exactly.
        arguments_hash: ArgumentsHash,
        /// When silence denies.
        expires: Timestamp,
        /// Why a person is asked; empty where the tool always asks.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        because: String,
    },
    /// The run is over.
    RunFinished {
        /// The run.
        run: u32,
        /// How.
        outcome: Outcome,
        /// Why.
        reason: EndReason,
        /// The error, when it is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<ErrorCode>,
        /// The answer.
        answer: String,
        /// Turns.
        turns: u32,
        /// Calls.
        calls: u32,
        /// Cost.
        usage: Usage,
        /// The answer was not seen to meet the agent's output schema.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unevaluated: bool,
        /// What came of the answer's verification, with the draft where it was changed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        verification: Option<Verification>,
    },
    /// A record was set aside.
    Parked {
        /// Which.
        parked: Sequence,
        /// Why.
        why: String,
    },
    /// The newest records were lost; the run goes on from what was known of them.
    Restored {
        /// The last record of the planners that was still there.
        after: Sequence,
        /// Calls that are made again.
        again: Vec<ToolCallId>,
        /// Calls that are in doubt.
        in_doubt: Vec<ToolCallId>,
    },
    /// Records up to this one are kept as a state, and may be gone.
    Checkpoint {
        /// The last of them.
        up_to: Sequence,
    },
}

/// The events that a record tells of: none for a tick, several when a turn answers calls itself.
pub fn events_of(thread: ThreadId, placed: &Placed) -> Vec<ThreadEvent> {
    let events = match &placed.record {
        Record::Input(input) => vec![input_event(&input.body)],
        Record::Fact(fact) => fact_events(fact),
        Record::ToolCall(call) => vec![Event::ToolCall {
            tool_call_id: call.tool_call_id.clone(),
            turn: call.turn,
            tool: call.tool.to_string(),
            arguments: call.arguments.clone(),
            effect: call.terms.effect,
        }],
        Record::Start(start) => start_event(start).into_iter().collect(),
        Record::Observation(observation) => vec![observation_event(observation)],
        Record::Tick => Vec::new(),
    };
    let place =
        |event| ThreadEvent { thread, sequence: placed.sequence, at: Some(placed.at), event };
    events.into_iter().map(place).collect()
}

fn input_event(body: &InputBody) -> Event {
    let (input, text) = match body {
        InputBody::Message(message) => ("message", message.text.clone()),
        InputBody::Steer(message) => ("steer", message.text.clone()),
        InputBody::Interrupt(message) => ("interrupt", message.text.clone()),
        InputBody::Cancel { reason } => ("cancel", reason.clone()),
        InputBody::Decision(decision) => ("decision", decision.note.clone()),
    };
    Event::Input { input: input.to_owned(), text }
}

/// What happens to a resource is no event of a thread.
fn start_event(start: &Start) -> Option<Event> {
    match start {
        Start::Started(s) => {
            Some(Event::ToolStarted { tool_call_id: s.tool_call_id.clone(), attempt: s.attempt })
        }
        Start::Barred(b) => Some(Event::ToolBarred { tool_call_id: b.tool_call_id.clone() }),
        Start::Held(_) => None,
    }
}

fn observation_event(observation: &Observation) -> Event {
    Event::Observation {
        tool_call_id: observation.tool_call_id.clone(),
        code: observation.code,
        content: observation.content.clone(),
        receipt: observation.receipt,
        duration_ms: observation.stamp.as_ref().map(|stamp| stamp.duration_ms),
        late: false,
    }
}

fn fact_events(fact: &Fact) -> Vec<Event> {
    match fact {
        Fact::TurnStarted(t) => vec![Event::TurnStarted {
            run: t.run,
            turn: t.turn,
            start: t.start,
            agent: t.agent.clone(),
            verify: t.verify,
            draft: t.draft,
        }],
        Fact::TurnCompleted(t) => {
            let (calls, answered) = calls_and_answers(&t.calls);
            let (run, turn, text, usage) = (t.run, t.turn, t.text.clone(), t.usage);
            let completed = Event::TurnCompleted { run, turn, text, calls, usage };
            std::iter::once(completed).chain(answered).collect()
        }
        Fact::TurnSealed(t) => {
            let (calls, answered) = calls_and_answers(&t.calls);
            let (run, turn, text, why) = (t.run, t.turn, t.text.clone(), t.why);
            let sealed = Event::TurnSealed { run, turn, text, calls, why };
            std::iter::once(sealed).chain(answered).collect()
        }
        Fact::CallClosed { observation } => {
            let late = late_call(observation);
            late.into_iter().chain([observation_event(observation)]).collect()
        }
        Fact::ApprovalAsked(asked) => vec![Event::ApprovalAsked {
            tool_call_id: asked.tool_call_id.clone(),
            tool: asked.tool.to_string(),
            arguments_hash: asked.arguments_hash.clone(),
            expires: asked.expires,
            because: asked.because.clone(),
        }],
        Fact::RunFinished(finished) => {
            let late = late_run(finished);
            late.into_iter().chain([finished_event(finished)]).collect()
        }
        Fact::Parked { sequence, why } => {
            vec![Event::Parked { parked: *sequence, why: why.clone() }]
        }
        Fact::Checkpoint(checkpoint) => {
            vec![Event::Checkpoint { up_to: checkpoint.standing.folded }]
        }
        Fact::Restored(restored) => {
            let in_doubt = restored.doubts.iter().map(|doubt| doubt.tool_call_id.clone());
            let (after, again) = (restored.after, restored.again.clone());
            let told = Event::Restored { after, again, in_doubt: in_doubt.collect() };
            let doubts = restored.doubts.iter().map(observation_event);
            let finished = restored.finished.as_deref().map(finished_event);
            std::iter::once(told).chain(doubts).chain(finished).collect()
        }
    }
}

/// A call that the planner closed because nobody answered it in time.
fn late_call(observation: &Observation) -> Option<Event> {
    let is_late = matches!(
        observation.code,
        Some(ErrorCode::TimedOut | ErrorCode::Unavailable | ErrorCode::InDoubt)
    );
    is_late.then(|| Event::DeadlinePassed {
        deadline: Deadline::Call,
        next: Next::CallClosed,
        turn: None,
        tool_call_id: Some(observation.tool_call_id.clone()),
    })
}

fn late_run(finished: &RunFinished) -> Option<Event> {
    (finished.reason == EndReason::MaxWallTime).then_some(Event::DeadlinePassed {
        deadline: Deadline::Run,
        next: Next::RunEnds,
        turn: None,
        tool_call_id: None,
    })
}

fn finished_event(f: &RunFinished) -> Event {
    Event::RunFinished {
        run: f.run,
        outcome: f.outcome,
        reason: f.reason,
        code: f.code,
        answer: f.answer.clone(),
        turns: f.turns,
        calls: f.calls,
        usage: f.usage,
        unevaluated: f.unevaluated,
        verification: f.verification.clone(),
    }
}

fn calls_and_answers(calls: &[crate::call::RequestedCall]) -> (Vec<ToolCallId>, Vec<Event>) {
    let ids = calls.iter().map(|call| call.tool_call_id.clone()).collect();
    let answers = calls.iter().filter_map(|call| match &call.disposition {
        Disposition::Answered(observation) => Some(observation_event(observation)),
        Disposition::Dispatch | Disposition::AwaitApproval => None,
    });
    (ids, answers.collect())
}

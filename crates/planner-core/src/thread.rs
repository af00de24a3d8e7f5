//! A thread as its records leave it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use proto::call::{Approved, RequestedCall, Started, ToolCall};
use proto::fact::{
    ApprovalAsked, Recalled, RunFinished, TurnCompleted, TurnStarted, Usage, VerifyStep,
};
use proto::grounds::Grounds;
use proto::ids::{AgentName, InputKey, Nonce, Sequence, ThreadRef, ToolCallId, ToolName};
use proto::input::{Decision, Message};
use proto::observation::Observation;
use proto::time::Timestamp;

use crate::ratios::Ratios;

/// A fold of a thread's records in sequence order.
#[derive(Clone, Debug, PartialEq)]
pub struct Thread {
    /// Where it lives.
    pub place: ThreadRef,
    /// The last record folded, its nonce and its time.
    pub head: Head,
    /// The last record of the fenced chain.
    pub plan_last: Sequence,
    /// The newest records of that chain, oldest first: how far a journal that has lost its tail is
    /// still the one that this was folded from.
    pub trail: VecDeque<(Sequence, Nonce)>,
    /// What decisions may rest on.
    pub grounds: Grounds,
    /// Who answers, from the newest input that named an agent.
    pub agent: Option<AgentName>,
    /// Keys of all inputs ever accepted.
    pub keys: BTreeSet<InputKey>,
    /// Inputs that no turn has read yet, oldest first.
    pub unread: Vec<Unread>,
    /// A cancel that came before any turn of the run it means, while inputs waited.
    pub cancel_unstarted: Option<Sequence>,
    /// The run in progress.
    pub run: Option<Run>,
    /// Runs begun so far.
    pub runs: u32,
    /// What the model has been shown or has said, oldest first.
    pub log: Vec<Logged>,
    /// Every call ever asked for.
    pub calls: BTreeMap<ToolCallId, Call>,
    /// Records that could not be decoded and are not parked yet.
    pub poison: BTreeMap<Sequence, String>,
    /// Late outcomes of doubtful calls that no turn has been told.
    pub notes: Vec<(Sequence, String)>,
    /// Results that came after their call was closed.
    pub late: u32,
    /// The end of the newest run that is over.
    pub finished: Option<Box<RunFinished>>,
    /// The newest checkpoint.
    pub checkpoint: Option<CheckpointMark>,
    /// What providers count for what was estimated.
    pub ratios: Ratios,
}

/// A checkpoint, as far as the next one has to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckpointMark {
    /// Runs begun by then.
    pub runs: u32,
    /// The last record in its state.
    pub folded: Sequence,
    /// When the bus stored it.
    pub at: Timestamp,
}

/// The last record folded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Its sequence.
    pub sequence: Sequence,
    /// Its nonce; absent when it could not be decoded.
    pub nonce: Option<Nonce>,
    /// When the bus stored it.
    pub at: Timestamp,
    /// When the bus stored the newest record that is no tick: a tick tells nothing new, so waiting
    /// is not counted from it.
    pub told_at: Timestamp,
}

/// How an unread input wants to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// By the next run.
    Enqueue,
    /// By the next turn of the active run.
    Steer,
    /// At once: the current turn and its calls are stopped.
    Interrupt,
}

/// An input that no turn has read yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Unread {
    /// Its place.
    pub sequence: Sequence,
    /// When it came.
    pub at: Timestamp,
    /// How it wants to be read.
    pub mode: Mode,
    /// What it says.
    pub message: Message,
}

/// The run in progress.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// From 1.
    pub number: u32,
    /// How long it had taken at the last record, without the time in which nobody could act.
    pub taken: Duration,
    /// Turns begun.
    pub turns: u32,
    /// The turn whose reply is not in the journal yet.
    pub open: Option<OpenTurn>,
    /// The last reply in the journal.
    pub reply: Option<Reply>,
    /// Tools whose approval came with the inputs.
    pub approved: BTreeSet<ToolName>,
    /// Set by the inputs.
    pub complexity: Option<u32>,
    /// The newest cancel that is not carried out yet.
    pub cancel: Option<Sequence>,
    /// Cost so far.
    pub usage: Usage,
    /// Calls asked for so far.
    pub calls: u32,
    /// Answers that were sent back to the model.
    pub repairs: u32,
    /// Turns that were handed back before anything came of them.
    pub handed_back: u32,
    /// The answer that is being verified.
    pub verifying: Option<Verifying>,
    /// What memory brought in.
    pub recalled: Vec<Recalled>,
}

/// An answer that is being verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verifying {
    /// The step of the newest turn.
    pub step: VerifyStep,
    /// The answer as it was.
    pub draft: String,
}

/// A turn whose reply is not in the journal yet.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenTurn {
    /// Where its start lies.
    pub sequence: Sequence,
    /// Its start.
    pub started: TurnStarted,
    /// Calls already in the journal, in the order they were dispatched.
    pub dispatched: Vec<ToolCallId>,
}

/// A reply in the journal.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// Its turn.
    pub turn: u32,
    /// What it said.
    pub text: String,
    /// Its calls, in reply order.
    pub calls: Vec<ToolCallId>,
    /// Whether it was cut short.
    pub sealed: bool,
    /// How sure the model was.
    pub confidence: Option<f64>,
}

/// What the model has been shown or has said.
#[derive(Clone, Debug, PartialEq)]
pub enum Logged {
    /// The user's words.
    User {
        /// The run that read them.
        run: u32,
        /// The words.
        text: String,
    },
    /// A word of the runtime.
    Note {
        /// The word.
        text: String,
    },
    /// A reply.
    Turn {
        /// Its run.
        run: u32,
        /// Its turn.
        turn: u32,
        /// What it said.
        text: String,
        /// What it thought.
        reasoning: String,
        /// Provider fields.
        opaque: Option<serde_json::Value>,
        /// Its calls, in reply order.
        calls: Vec<ToolCallId>,
    },
}

/// A call from the model's wish to its one observation.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// As asked for.
    pub requested: RequestedCall,
    /// The run.
    pub run: u32,
    /// The turn.
    pub turn: u32,
    /// Place in the reply.
    pub position: u32,
    /// The question to a person.
    pub asked: Option<ApprovalAsked>,
    /// The first valid word of a person.
    pub decision: Option<Decision>,
    /// The record that workers got.
    pub dispatched: Option<ToolCall>,
    /// Whether an attempt with an effect began.
    pub start: StartState,
    /// The one observation.
    pub closed: Option<Observation>,
    /// The first other result that came after it was closed; shown, and never acted on.
    pub late: Option<Observation>,
}

/// What stands on a call's start subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartState {
    /// Nothing.
    None,
    /// An attempt began.
    Started {
        /// Its record's sequence.
        sequence: Sequence,
        /// The newest attempt.
        started: Started,
    },
    /// It never starts.
    Barred,
    /// It had started; a check found no effect, and no further attempt is made.
    BarredAfterCheck,
}

impl Thread {
    /// A thread without records.
    pub fn new(place: ThreadRef) -> Self {
        Self {
            place,
            head: Head::default(),
            plan_last: Sequence::NONE,
            trail: VecDeque::new(),
            grounds: Grounds::default(),
            agent: None,
            keys: BTreeSet::new(),
            unread: Vec::new(),
            cancel_unstarted: None,
            run: None,
            runs: 0,
            log: Vec::new(),
            calls: BTreeMap::new(),
            poison: BTreeMap::new(),
            notes: Vec::new(),
            late: 0,
            finished: None,
            checkpoint: None,
            ratios: Ratios::default(),
        }
    }

    /// Calls of the active run that have no observation, in reply order.
    pub fn open_calls(&self) -> impl Iterator<Item = &Call> {
        let run = self.run.as_ref().map(|run| run.number);
        let mut open: Vec<&Call> = self
            .calls
            .values()
            .filter(|call| Some(call.run) == run && call.closed.is_none())
            .collect();
        open.sort_by_key(|call| (call.turn, call.position));
        open.into_iter()
    }

    /// Calls of a run that a cancel or a doubt has answered with a receipt, in reply order.
    pub fn receipts(&self, run: u32) -> Vec<&Call> {
        let has_receipt = |call: &&Call| {
            call.run == run && call.closed.as_ref().is_some_and(|closed| closed.receipt.is_some())
        };
        let mut calls: Vec<&Call> = self.calls.values().filter(has_receipt).collect();
        calls.sort_by_key(|call| (call.turn, call.position));
        calls
    }

    /// Whether an interrupt waits to be read by the active run.
    pub fn is_interrupted(&self) -> bool {
        self.run.is_some() && self.unread.iter().any(|input| input.mode == Mode::Interrupt)
    }

    /// Whether the active run is being stopped or interrupted.
    pub fn is_stopping(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.cancel.is_some()) || self.is_interrupted()
    }

    /// Whether text that a tool brought in has entered the context.
    pub fn is_tainted(&self) -> bool {
        let results = self.calls.values().flat_map(|call| [&call.closed, &call.late]);
        results.flatten().any(|observation| observation.stamp.is_some())
    }

    /// Whether enough runs have ended since the last checkpoint, and none is under way: older records
    /// are then worth a state.
    pub fn is_worth_a_checkpoint(&self, runs: u32) -> bool {
        let since = self.checkpoint.map_or(0, |checkpoint| checkpoint.runs);
        self.is_at_rest() && self.runs.saturating_sub(since) >= runs.max(1)
    }

    /// Up to where records may be purged once a further checkpoint is in the journal. A call whose
    /// record is purged cannot be told from one that never started, so none may be left that a worker
    /// would still begin: each is older than the last checkpoint, and has had `schedule_to_start`
    /// since, twice, for clocks and redeliveries.
    pub fn purgeable(&self, now: Timestamp, schedule_to_start: Duration) -> Option<Sequence> {
        let last = self.checkpoint?;
        let safe = last.at.after(schedule_to_start.saturating_mul(2));
        (now >= safe).then_some(last.folded)
    }

    /// Whether nothing is left to do for ever, unless an input comes.
    pub fn is_at_rest(&self) -> bool {
        self.run.is_none() && self.unread.is_empty() && self.poison.is_empty()
    }
}

/// What an observation of a call is when it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rank {
    /// The one that enters the transcript.
    First,
    /// Told before.
    Known,
    /// Another result after the call was closed; shown, and never acted on.
    Late,
}

impl Call {
    /// What `observation`, which is about to be folded, is.
    pub fn rank(&self, observation: &Observation) -> Rank {
        match &self.closed {
            None => Rank::First,
            Some(closed) if closed == observation => Rank::Known,
            Some(_) if self.late.as_ref() == Some(observation) => Rank::Known,
            Some(_) => Rank::Late,
        }
    }

    /// Whether an attempt must be journaled before its effect.
    pub fn needs_start(&self) -> bool {
        self.requested.terms.as_ref().is_some_and(|terms| terms.effect.needs_start())
    }

    /// Its id.
    pub fn id(&self) -> &ToolCallId {
        &self.requested.tool_call_id
    }

    /// Who agreed, when somebody did.
    pub fn approval(&self) -> Option<Approved> {
        let decision = self.decision.as_ref().filter(|decision| decision.approve)?;
        Some(Approved {
            by: decision.by.clone(),
            arguments_hash: decision.arguments_hash.clone(),
            fingerprint: self.asked.as_ref().map(|asked| asked.fingerprint.clone()),
        })
    }
}

impl Reply {
    /// The reply that a completed turn leaves.
    pub fn of(turn: &TurnCompleted) -> Self {
        Self {
            turn: turn.turn,
            text: turn.text.clone(),
            calls: turn.calls.iter().map(|call| call.tool_call_id.clone()).collect(),
            sealed: false,
            confidence: turn.confidence,
        }
    }
}

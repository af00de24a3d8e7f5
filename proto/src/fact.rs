//! What a planner records for itself and for readers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::call::RequestedCall;
use crate::error_code::ErrorCode;
use crate::ids::{
    AgentName, ArgumentsHash, Fingerprint, InstanceId, Sequence, ToolCallId, ToolName,
};
use crate::observation::{ArtifactRef, Observation};
use crate::time::Timestamp;

/// One fact of the fenced chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "fact", rename_all = "snake_case")]
pub enum Fact {
    /// A model request is about to be made.
    TurnStarted(TurnStarted),
    /// The reply ended; names every call of the turn.
    TurnCompleted(TurnCompleted),
    /// The reply was cut short; keeps the text so far and the calls already in the journal.
    TurnSealed(TurnSealed),
    /// A call is answered without a worker.
    CallClosed {
        /// Its one observation.
        observation: Observation,
    },
    /// A person is asked.
    ApprovalAsked(ApprovalAsked),
    /// The run is over.
    RunFinished(RunFinished),
    /// A record that nobody can decode is skipped by every fold.
    Parked {
        /// The skipped record.
        sequence: Sequence,
        /// Why it could not be read.
        why: String,
    },
    /// The journal had lost its newest records; this is what was known of them.
    Restored(Restored),
    /// What came before is also kept as a state; older records may be purged.
    Checkpoint(Checkpoint),
}

impl Fact {
    /// Whether a fact that lies at `at` says that it was decided from records that lie there or
    /// later. Those are gone: the journal lost its tail, and this one took a number of theirs. What
    /// was decided from them never counted, so every reader passes over it.
    ///
    /// Where other threads' records have taken the numbers, a fact may land above all that it was
    /// decided from: [`crate::grounds::Grounds`] tells that too.
    pub fn is_void(&self, at: Sequence) -> bool {
        match self {
            Self::TurnStarted(_) | Self::RunFinished(_) => {
                self.folded().is_some_and(|seen| seen >= at)
            }
            Self::TurnCompleted(_)
            | Self::TurnSealed(_)
            | Self::CallClosed { .. }
            | Self::ApprovalAsked(_)
            | Self::Parked { .. }
            | Self::Restored(_)
            | Self::Checkpoint(_) => false,
        }
    }

    /// The last record that it was decided from, where it says so.
    pub(crate) fn folded(&self) -> Option<Sequence> {
        match self {
            Self::TurnStarted(turn) => Some(turn.seen),
            Self::RunFinished(finished) => Some(finished.seen),
            Self::Checkpoint(checkpoint) => Some(checkpoint.standing.folded),
            Self::TurnCompleted(_)
            | Self::TurnSealed(_)
            | Self::CallClosed { .. }
            | Self::ApprovalAsked(_)
            | Self::Parked { .. }
            | Self::Restored(_) => None,
        }
    }
}

/// What came before is also kept as a state; older records may be purged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Checkpoint {
    /// The state, up to `standing.folded`.
    pub state: ArtifactRef,
    /// Where the thread stands.
    pub standing: Standing,
    /// States that only records name which are purged behind this one. Whoever writes the next
    /// checkpoint removes them: by then nobody can be reading what named them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replaces: Vec<ArtifactRef>,
}

/// The journal had lost its newest records; this is what was known of them. A fold goes on from the
/// state, dated back to the last record that is still there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Restored {
    /// The newest record of the chain that was known before; what lies above it is folded again.
    pub after: Sequence,
    /// What was known, as a kept state.
    pub state: ArtifactRef,
    /// Calls whose records were lost and that may be repeated: they are made again.
    pub again: Vec<ToolCallId>,
    /// Calls that may have happened and must not be repeated: they are in doubt.
    pub doubts: Vec<Observation>,
    /// The end of the newest run, when the record of it was lost: readers hear of it here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished: Option<Box<RunFinished>>,
    /// Where the thread stands with all this.
    pub standing: Standing,
}

/// Where a thread stands, for readers that see only the records from here on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Standing {
    /// Records up to this one are contained.
    pub folded: Sequence,
    /// Runs begun so far.
    pub runs: u32,
    /// The run in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<ActiveRun>,
    /// Inputs that no turn has read.
    pub unread: Vec<Sequence>,
}

/// The run in progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ActiveRun {
    /// From 1.
    pub number: u32,
    /// Turns begun.
    pub turns: u32,
    /// Where the start of a turn lies whose reply is missing, and which start of it that was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<(Sequence, u32)>,
    /// Its calls.
    pub calls: Vec<KnownCall>,
}

/// A call of the run in progress.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KnownCall {
    /// The call.
    pub tool_call_id: ToolCallId,
    /// Its turn.
    pub turn: u32,
    /// Whether a reply in the journal names it.
    pub named: bool,
    /// Whether it waits for a person.
    pub asks: bool,
    /// Whether it was given to workers, and need not be given again.
    pub dispatched: bool,
    /// Whether it has its observation.
    pub answered: bool,
}

/// A model request is about to be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnStarted {
    /// From 1 in the thread.
    pub run: u32,
    /// From 1 in the run.
    pub turn: u32,
    /// Which start of this turn, from 1; a crash without a dispatch starts it again.
    pub start: u32,
    /// The last sequence folded into the request; all above it is unread.
    pub seen: Sequence,
    /// The planner instance that asks.
    pub owner: InstanceId,
    /// The delivery that is held until the turn is settled.
    pub held_by: Sequence,
    /// When the turn is overdue, in server time.
    pub deadline: Timestamp,
    /// Who answers.
    pub agent: AgentName,
    /// The agent's file as it was.
    pub agent_fingerprint: Fingerprint,
    /// A word of the runtime that this request ends with, such as why an answer was not accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The step of the answer's verification that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<VerifyStep>,
    /// Whether an answer of it is a draft: it is verified before anything is given as the answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub draft: bool,
    /// What memory brought in, for this request and the rest of the run. It is told as recalled, and
    /// never kept as something new.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recalled: Vec<Recalled>,
}

/// What memory brought in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Recalled {
    /// Where it is from: a fragment of a thread, or document, version and section.
    pub source: String,
    /// The words.
    pub text: String,
}

/// A step of a chain of verification; the draft comes before the first.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum VerifyStep {
    /// The model asks itself about each claim of its draft.
    Questions,
    /// It answers the questions, with tools where one can tell.
    Check,
    /// It gives the answer that is left.
    Revise,
}

/// What came of an answer's verification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "verified", rename_all = "snake_case")]
pub enum Verification {
    /// The draft held.
    Confirmed,
    /// The answer is another one than the draft.
    Revised {
        /// The draft.
        draft: String,
    },
    /// It ended before its last step, so the answer is the draft.
    Unfinished {
        /// What ended it.
        because: EndReason,
    },
}

/// Tokens and money of one model request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Tokens sent.
    pub prompt_tokens: u64,
    /// Tokens received.
    pub completion_tokens: u64,
    /// Millionths of a US dollar; absent when the price is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micro_usd: Option<u64>,
}

impl Usage {
    /// The sum; a price is known as soon as one part knows it.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            prompt_tokens: self.prompt_tokens.saturating_add(other.prompt_tokens),
            completion_tokens: self.completion_tokens.saturating_add(other.completion_tokens),
            micro_usd: match (self.micro_usd, other.micro_usd) {
                (Some(a), Some(b)) => Some(a.saturating_add(b)),
                (known, None) | (None, known) => known,
            },
        }
    }

    /// Tokens both ways.
    pub fn tokens(&self) -> u64 {
        self.prompt_tokens.saturating_add(self.completion_tokens)
    }
}

/// The reply ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnCompleted {
    /// The run.
    pub run: u32,
    /// The turn.
    pub turn: u32,
    /// The record that started it.
    pub started: Sequence,
    /// What the model said.
    pub text: String,
    /// What it thought, when it shows that apart.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reasoning: String,
    /// Every call of the turn, in reply order.
    pub calls: Vec<RequestedCall>,
    /// The model that answered.
    pub model: String,
    /// What it cost.
    pub usage: Usage,
    /// How sure the model said it is, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// Provider fields of the reply that must be sent back unread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<serde_json::Value>,
    /// The request in tokens, estimated and counted; absent when the provider did not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<Counted>,
}

/// How the tokens of a request were estimated, before any correction.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Estimator {
    /// By the number of its characters.
    Characters,
    /// By an encoding of its text into tokens.
    Encoding,
}

/// A request in tokens, as it was estimated and as its provider counted it. What is estimated later
/// in the thread is corrected by it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counted {
    /// The model that was asked.
    pub model: String,
    /// How it was estimated.
    pub by: Estimator,
    /// The estimate, without correction.
    pub estimated: u64,
    /// The provider's count.
    pub counted: u64,
}

/// Why a turn was sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SealReason {
    /// Its owner died.
    OwnerLost,
    /// The model's stream broke after a call was dispatched.
    StreamBroken,
    /// The user interrupted or cancelled.
    Interrupted,
    /// Its owner shut down in good order before a call went out; the request is made again.
    HandedBack,
}

/// The reply was cut short.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnSealed {
    /// The run.
    pub run: u32,
    /// The turn.
    pub turn: u32,
    /// The record that started it.
    pub started: Sequence,
    /// The text so far.
    pub text: String,
    /// The reasoning so far.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reasoning: String,
    /// Exactly the calls that were already in the journal, in reply order.
    pub calls: Vec<RequestedCall>,
    /// Why.
    pub why: SealReason,
    /// What it cost as far as known.
    #[serde(default)]
    pub usage: Usage,
}

/// A person is asked about one call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalAsked {
    /// The call.
    pub tool_call_id: ToolCallId,
    /// The tool.
    pub tool: ToolName,
    /// What exactly is asked for.
    pub arguments_hash: ArgumentsHash,
    /// The tool as it was.
    pub fingerprint: Fingerprint,
    /// When silence becomes a denial, in server time.
    pub expires: Timestamp,
    /// Why a person is asked; empty where the tool always asks.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub because: String,
}

/// How a run ended.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The agent answered.
    Answered,
    /// It could not go on.
    Failed,
    /// It was stopped: by a person or by a limit.
    Stopped,
}

/// Why a run ended.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// The reply had no call: it is the answer.
    Answer,
    /// The model said it is sure, and no call is open.
    Confident,
    /// Two turns in a row brought no new call.
    NothingNew,
    /// The user ended it.
    UserEnded,
    /// The turn limit.
    MaxTurns,
    /// The token limit.
    MaxTokens,
    /// The money limit.
    MaxMoney,
    /// The wall-time limit.
    MaxWallTime,
    /// The tool-call limit.
    MaxToolCalls,
    /// A cancel.
    Cancelled,
    /// An error; the code says which.
    Error,
}

/// The run is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunFinished {
    /// The run.
    pub run: u32,
    /// The last sequence the planner had folded: what lies above it is answered by a later run.
    pub seen: Sequence,
    /// How it ended.
    pub outcome: Outcome,
    /// Why.
    pub reason: EndReason,
    /// The error, when the reason is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<ErrorCode>,
    /// The answer, or what is known so far. Never empty.
    pub answer: String,
    /// Turns made.
    pub turns: u32,
    /// Calls made.
    pub calls: u32,
    /// What it cost in all.
    pub usage: Usage,
    /// The answer does not meet the agent's output schema, or could not be checked in time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unevaluated: bool,
    /// What came of the answer's verification, when the agent asks for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<Verification>,
}

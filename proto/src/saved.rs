//! A folded thread as it is kept outside the journal: as a snapshot in working memory, and as the
//! artifact of a checkpoint or a restored record. Newer fields have defaults, so that what an older
//! build kept can be read; a state that an older build must not go on from raises `min_reader`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::call::{RequestedCall, Started, ToolCall};
use crate::envelope::DecodeError;
use crate::fact::{
    ApprovalAsked, Estimator, Recalled, RunFinished, TurnStarted, Usage, VerifyStep,
};
use crate::grounds::Grounds;
use crate::ids::{AgentName, InputKey, Nonce, Sequence, ThreadRef, ToolCallId, ToolName};
use crate::input::{Decision, Message};
use crate::observation::Observation;
use crate::time::Timestamp;

/// The version of the state that this build writes.
pub const VERSION: u16 = 2;
/// The oldest reader that may go on from what this build writes.
pub const MIN_READER: u16 = 1;

/// A thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each field is that of the folded thread")]
pub struct SavedThread {
    pub place: ThreadRef,
    pub head: SavedHead,
    pub plan_last: Sequence,
    pub trail: Vec<(Sequence, Nonce)>,
    pub agent: Option<AgentName>,
    pub keys: Vec<InputKey>,
    pub unread: Vec<SavedUnread>,
    pub cancel_unstarted: Option<Sequence>,
    pub run: Option<SavedRun>,
    pub runs: u32,
    pub log: Vec<SavedLogged>,
    pub calls: Vec<SavedCall>,
    pub poison: Vec<(Sequence, String)>,
    pub notes: Vec<(Sequence, String)>,
    pub late: u32,
    #[serde(default)]
    pub finished: Option<Box<RunFinished>>,
    #[serde(default)]
    pub checkpoint: Option<SavedCheckpoint>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ratios: Vec<SavedRatio>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grounds: Option<Grounds>,
}

/// What a provider counts for what was estimated, over the newest requests of the thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each field is that of the folded thread")]
pub struct SavedRatio {
    pub model: String,
    pub by: Estimator,
    pub estimated: u64,
    pub counted: u64,
}

/// The last record that it was folded from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each field is that of the folded thread")]
pub struct SavedHead {
    pub sequence: Sequence,
    pub nonce: Option<Nonce>,
    pub at: Timestamp,
    pub told_at: Timestamp,
}

/// The newest checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each field is that of the folded thread")]
pub struct SavedCheckpoint {
    pub runs: u32,
    pub folded: Sequence,
    pub at: Timestamp,
}

/// How an unread input wants to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the modes of the folded thread")]
pub enum SavedMode {
    Enqueue,
    Steer,
    Interrupt,
}

/// An input that no turn has read yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each field is that of the folded thread")]
pub struct SavedUnread {
    pub sequence: Sequence,
    pub at: Timestamp,
    pub mode: SavedMode,
    pub message: Message,
}

/// The run in progress.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each field is that of the folded thread")]
pub struct SavedRun {
    pub number: u32,
    pub taken_ns: u64,
    pub turns: u32,
    pub open: Option<SavedOpenTurn>,
    pub reply: Option<SavedReply>,
    pub approved: Vec<ToolName>,
    pub complexity: Option<u32>,
    pub cancel: Option<Sequence>,
    pub usage: Usage,
    pub calls: u32,
    pub repairs: u32,
    pub handed_back: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verifying: Option<SavedVerifying>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recalled: Vec<Recalled>,
}

/// An answer that is being verified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each field is that of the folded thread")]
pub struct SavedVerifying {
    pub step: VerifyStep,
    pub draft: String,
}

/// A turn whose reply is not in the journal yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each field is that of the folded thread")]
pub struct SavedOpenTurn {
    pub sequence: Sequence,
    pub started: TurnStarted,
    pub dispatched: Vec<ToolCallId>,
}

/// A reply in the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each field is that of the folded thread")]
pub struct SavedReply {
    pub turn: u32,
    pub text: String,
    pub calls: Vec<ToolCallId>,
    pub sealed: bool,
    pub confidence: Option<f64>,
}

/// What the model has been shown or has said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "said_by", rename_all = "snake_case")]
#[expect(missing_docs, reason = "each field is that of the folded thread")]
pub enum SavedLogged {
    User {
        run: u32,
        text: String,
    },
    Note {
        text: String,
    },
    Turn {
        run: u32,
        turn: u32,
        text: String,
        reasoning: String,
        opaque: Option<Value>,
        calls: Vec<ToolCallId>,
    },
}

/// A call from the model's wish to its one observation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each field is that of the folded thread")]
pub struct SavedCall {
    pub requested: RequestedCall,
    pub run: u32,
    pub turn: u32,
    pub position: u32,
    pub asked: Option<ApprovalAsked>,
    pub decision: Option<Decision>,
    pub dispatched: Option<ToolCall>,
    pub start: SavedStart,
    pub closed: Option<Observation>,
    pub late: Option<Observation>,
}

/// What stands on a call's start subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
#[expect(missing_docs, reason = "the states of the folded thread")]
pub enum SavedStart {
    None,
    Started { sequence: Sequence, started: Started },
    Barred,
    BarredAfterCheck,
}

#[derive(Deserialize)]
struct Versions {
    min_reader: u16,
}

#[derive(Deserialize)]
struct Kept {
    thread: SavedThread,
}

#[derive(Serialize)]
struct Keep<'a> {
    v: u16,
    min_reader: u16,
    thread: &'a SavedThread,
}

impl SavedThread {
    /// The bytes, with the version of this build.
    pub fn encode(&self) -> Vec<u8> {
        // Who does not know that an answer is being verified takes the next reply for it.
        let is_verifying = self.run.as_ref().is_some_and(|run| run.verifying.is_some());
        let min_reader = if is_verifying { VERSION } else { MIN_READER };
        let keep = Keep { v: min_reader, min_reader, thread: self };
        serde_json::to_vec(&keep).unwrap_or_else(|_| unreachable!("states have string keys only"))
    }

    /// Reads bytes back.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let malformed = |error: serde_json::Error| DecodeError::Malformed(error.to_string());
        let versions: Versions = serde_json::from_slice(bytes).map_err(malformed)?;
        if versions.min_reader > VERSION {
            return Err(DecodeError::TooNew { min_reader: versions.min_reader });
        }
        let kept: Kept = serde_json::from_slice(bytes).map_err(malformed)?;
        Ok(kept.thread)
    }
}

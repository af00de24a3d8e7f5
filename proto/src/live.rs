//! What never enters the journal: text while it streams, and hints.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{Sequence, ThreadRef, ToolCallId};
use crate::notice::LiveNotice;

/// A piece of a reply. Readers drop one whose `started` is lower than the highest they have seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LiveText {
    /// The sequence of the turn's `turn_started`.
    pub started: Sequence,
    /// The turn.
    pub turn: u32,
    /// Where the piece begins within its channel, in bytes; lower than before when the reply was asked
    /// for again.
    pub offset: u64,
    /// Which channel.
    pub channel: Channel,
    /// The piece.
    pub delta: String,
}

/// What is said beside the journal while a turn is open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum LiveWord {
    /// A piece of the reply.
    Text(LiveText),
    /// What delays it.
    Notice(LiveNotice),
}

impl LiveWord {
    /// The sequence of the turn's `turn_started`.
    pub fn started(&self) -> Sequence {
        match self {
            Self::Text(text) => text.started,
            Self::Notice(notice) => notice.started,
        }
    }
}

/// What kind of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    /// What the model says.
    Text,
    /// What it thinks.
    Reasoning,
}

/// A hint over the control subject; may be lost, so it only makes things faster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "hint", rename_all = "snake_case")]
pub enum Hint {
    /// Stop working on a call.
    CancelCall {
        /// The call.
        tool_call_id: ToolCallId,
    },
    /// Stop the model request of the thread: an interrupt or cancel is in the journal.
    StopTurn,
}

/// What one planner asks another before it takes over a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeldQuestion {
    /// The thread.
    pub thread: ThreadRef,
    /// The `turn_started` in question.
    pub started: Sequence,
}

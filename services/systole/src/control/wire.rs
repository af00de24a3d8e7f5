//! What is said at the door, and the bounds of it.

use std::path::PathBuf;
use std::time::Duration;

use proto::error_code::ErrorCode;
use proto::ids::{AgentName, Fingerprint, InputKey, Sequence, ThreadId};
use proto::input::{Decision, Message};
use proto::live::LiveWord;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};

/// The version of this protocol.
pub(super) const VERSION: u32 = 1;
/// The longest line, in bytes: the longest text with every character escaped.
pub(super) const LONGEST: u64 = 4 * 1024 * 1024;
/// How long either side waits for the other.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// The longest silence of a followed thread.
pub(super) const BEAT: Duration = Duration::from_secs(1);

/// A question with its version.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Asked {
    pub(super) version: u32,
    pub(super) ask: Ask,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ask {
    /// Who holds the store.
    Status,
    /// Append a message for one of the holder's agents.
    Post {
        /// The thread; a new one begins with its first message.
        thread: ThreadId,
        /// Its key.
        key: InputKey,
        /// What it says; it names the agent.
        message: Message,
        /// The agent's file as the caller read it.
        fingerprint: Fingerprint,
        /// Where that file is.
        #[serde(default)]
        file: Option<PathBuf>,
    },
    /// Append a cancel.
    Cancel {
        /// The thread.
        thread: ThreadId,
        /// Why, for people.
        reason: String,
    },
    /// Append a person's word on a call.
    Decide {
        /// The thread.
        thread: ThreadId,
        /// The word.
        decision: Decision,
    },
    /// The ending of a run that was handed over has been printed.
    Shown {
        /// The thread.
        thread: ThreadId,
    },
    /// Tell what streams in a thread from now on.
    Follow {
        /// The thread.
        thread: ThreadId,
    },
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reply {
    /// Who holds the store.
    Status(Status),
    /// The input lies in the journal.
    Accepted(Sequence),
    /// Nothing was done.
    Refused {
        /// The stable code.
        code: ErrorCode,
        /// Why, and what to do.
        why: String,
    },
    /// What is said beside the journal of a followed thread.
    Live(LiveWord),
    /// A followed thread is silent.
    Beat,
}

/// Who holds the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Status {
    /// Its process.
    pub(crate) pid: u32,
    /// What it is there for.
    pub(crate) role: Role,
    /// The agents that it runs.
    pub(crate) agents: Vec<Known>,
    /// Whether irreversible tools only say what they would do.
    pub(crate) dry_run: bool,
    /// Why files that have changed were not taken up: its agents are as they were before.
    #[serde(default)]
    pub(crate) kept_back: Vec<String>,
}

/// What a holder is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    /// It stays and takes messages.
    Dev,
    /// It runs one run and ends.
    Run,
}

/// An agent that a holder runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Known {
    /// Its name.
    pub(crate) name: AgentName,
    /// Its file as the holder read it.
    pub(crate) fingerprint: Fingerprint,
    /// Where that file is.
    #[serde(default)]
    pub(crate) file: Option<PathBuf>,
    /// Which model answers, in words.
    pub(crate) model: String,
}

/// One line, or nothing at the end of the stream. A line that is too long is an error.
pub(super) async fn read_line(
    reader: &mut (impl AsyncBufReadExt + Unpin),
) -> std::io::Result<Option<String>> {
    let mut line = String::new();
    let read = reader.take(LONGEST).read_line(&mut line).await?;
    if read == 0 {
        return Ok(None);
    }
    if !line.ends_with('\n') {
        return Err(std::io::Error::other("a line without an end, or longer than is read"));
    }
    Ok(Some(line))
}

/// Writes one line, within patience.
pub(super) async fn write_line(
    writer: &mut (impl AsyncWriteExt + Unpin),
    value: &impl Serialize,
) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    let written = tokio::time::timeout(PATIENCE, writer.write_all(&line)).await;
    written.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into()))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use serde_json::json;

    use super::*;

    #[test]
    fn questions_and_answers_look_like_this() {
        let thread: ThreadId = "01M8PYNN6WV5B21QPNKKRVK61E".parse().unwrap();
        let ask = Ask::Cancel { thread, reason: "enough".to_owned() };
        assert_eq!(
            serde_json::to_value(Asked { version: VERSION, ask }).unwrap(),
            json!({"version": 1, "ask": {"cancel": {
                "thread": "01M8PYNN6WV5B21QPNKKRVK61E", "reason": "enough"}}})
        );
        assert_eq!(
            serde_json::to_value(Asked { version: VERSION, ask: Ask::Status }).unwrap(),
            json!({"version": 1, "ask": "status"})
        );
        let refused = Reply::Refused { code: ErrorCode::NotFound, why: "no".to_owned() };
        assert_eq!(
            serde_json::to_value(refused).unwrap(),
            json!({"refused": {"code": "not_found", "why": "no"}})
        );
    }

    #[tokio::test]
    async fn a_line_without_an_end_is_no_line() {
        let mut whole = Cursor::new(b"{}\n[]".to_vec());
        assert_eq!(read_line(&mut whole).await.unwrap().as_deref(), Some("{}\n"));
        assert!(read_line(&mut whole).await.is_err());
        assert_eq!(read_line(&mut whole).await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_line_that_never_ends_is_cut_off() {
        let length = usize::try_from(LONGEST).unwrap() + 1;
        let mut endless = Cursor::new(vec![b'x'; length]);
        assert!(read_line(&mut endless).await.is_err());
    }
}

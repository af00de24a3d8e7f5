//! The holder's side.

use std::io;
use std::path::Path;
use std::sync::Arc;

use ports::BusError;
use ports::clock::Ids;
use ports::journal::Journal;
use ports::live::{Live, Topic};
use proto::error_code::ErrorCode;
use proto::ids::{Fingerprint, InputKey, ThreadId};
use proto::input::{InputBody, Message};
use service_runtime::tasks::TaskSet;
use tokio::io::BufReader;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::time::timeout;

use super::fresh::Fresh;
use super::path::ShortPath;
use super::wire::{
    Ask, Asked, BEAT, PATIENCE, Reply, Role, Status, VERSION, read_line, write_line,
};
use crate::inputs;
use crate::scope::Scope;
use crate::wiring::endings::Endings;

/// The most conversations at once.
pub(super) const MOST: usize = 64;

/// What answers need of the process that holds the store.
pub(crate) struct Holder {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) live: Arc<dyn Live>,
    pub(crate) ids: Arc<dyn Ids>,
    pub(crate) scope: Scope,
    pub(crate) endings: Endings,
    pub(crate) status: watch::Receiver<Status>,
    /// Present when its files may change.
    pub(crate) fresh: Option<Fresh>,
}

/// The open door of this process; closing removes the socket.
pub(crate) struct Door {
    listener: UnixListener,
    place: ShortPath,
}

impl Door {
    /// Opens the door. Only the owner of the store's lock may: a socket that lies there is a dead
    /// process's.
    pub(crate) fn open(store: &Path) -> io::Result<Self> {
        let place = ShortPath::beside(store)?;
        let listener = place.bind()?;
        Ok(Self { listener, place })
    }

    /// Answers whoever comes.
    pub(crate) async fn serve(self, holder: Holder) {
        let holder = Arc::new(holder);
        let mut conversations = TaskSet::new();
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) if conversations.len() < MOST => {
                    conversations.start("conversation", converse(stream, Arc::clone(&holder)));
                }
                Ok(_) => tracing::warn!("more than {MOST} conversations at the control socket"),
                Err(error) => {
                    tracing::warn!(%error, "the control socket failed");
                    tokio::time::sleep(PATIENCE).await;
                }
            }
        }
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        if let Err(error) = self.place.remove() {
            tracing::debug!(%error, "the control socket was not removed");
        }
    }
}

async fn converse(stream: UnixStream, holder: Arc<Holder>) {
    let is_owner = stream.peer_cred().is_ok_and(|peer| peer.uid() == owner());
    let (reader, mut writer) = stream.into_split();
    let asked = if is_owner { listen(reader).await } else { Err(refused("not the owner")) };
    let reply = match asked {
        Ok(Ask::Follow { thread }) => return follow(&mut writer, &holder, thread).await,
        Ok(ask) => holder.answer(ask).await,
        Err(reply) => reply,
    };
    if let Err(error) = write_line(&mut writer, &reply).await {
        tracing::debug!(%error, "the caller of the control socket is gone");
    }
}

fn owner() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The question, or what to say to whoever asked none.
async fn listen(reader: OwnedReadHalf) -> Result<Ask, Reply> {
    let line = timeout(PATIENCE, read_line(&mut BufReader::new(reader))).await;
    let line = line.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    let line = line.map_err(|error| refused(&error.to_string()))?.unwrap_or_default();
    understand(&line)
}

/// A newer question may hold what this version cannot read, so the version is looked at first.
fn understand(line: &str) -> Result<Ask, Reply> {
    let value: serde_json::Value =
        serde_json::from_str(line).map_err(|error| refused(&format!("not a question: {error}")))?;
    let version = value.get("version").and_then(serde_json::Value::as_u64);
    if version != Some(u64::from(VERSION)) {
        let theirs = version.map_or_else(|| "none".to_owned(), |version| version.to_string());
        return Err(refused(&format!(
            "the caller speaks version {theirs} of the control protocol, the holder of the store \
             version {VERSION}: use the same program for both"
        )));
    }
    let asked: Asked = serde_json::from_value(value)
        .map_err(|error| refused(&format!("not a question: {error}")))?;
    Ok(asked.ask)
}

fn refused(why: &str) -> Reply {
    Reply::Refused { code: ErrorCode::InvalidInput, why: why.to_owned() }
}

/// Tells what streams until somebody leaves. A slow reader loses pieces, never the holder's time.
async fn follow(writer: &mut OwnedWriteHalf, holder: &Holder, thread: ThreadId) {
    let topic = Topic::Text(inputs::place(thread));
    let mut pieces = match holder.live.subscribe(&topic).await {
        Ok(pieces) => pieces,
        Err(error) => {
            let reply = Reply::Refused { code: error.code(), why: error.to_string() };
            return write_line(writer, &reply).await.unwrap_or_default();
        }
    };
    // Said at once: from here on nothing is missed.
    let mut reply = Reply::Beat;
    loop {
        if write_line(writer, &reply).await.is_err() {
            return;
        }
        reply = match timeout(BEAT, pieces.next()).await {
            Ok(Some((_, bytes))) => match serde_json::from_slice(&bytes) {
                Ok(piece) => Reply::Live(piece),
                Err(_) => Reply::Beat,
            },
            Ok(None) => return,
            Err(_) => Reply::Beat,
        };
    }
}

impl Holder {
    async fn answer(&self, ask: Ask) -> Reply {
        match ask {
            Ask::Status => Reply::Status(self.status.borrow().clone()),
            Ask::Post { thread, key, message, fingerprint, file } => {
                if let Some(fresh) = &self.fresh {
                    fresh.look().await;
                }
                let status = self.status.borrow().clone();
                match objection(&status, &message, (&fingerprint, file.as_deref())) {
                    Some((code, why)) => Reply::Refused { code, why },
                    None => self.post(thread, key, message).await,
                }
            }
            Ask::Cancel { thread, reason } => {
                // The end of a run that this process does not carry on with is carried out too.
                self.scope.add(thread);
                self.put(thread, InputBody::Cancel { reason }).await
            }
            Ask::Shown { thread } => match self.endings.shown(&inputs::place(thread)).await {
                Ok(()) => Reply::Beat,
                Err(error) => Reply::from(&error),
            },
            Ask::Decide { thread, decision } => {
                self.put(thread, InputBody::Decision(decision)).await
            }
            Ask::Follow { .. } => refused("a thread is followed in a conversation of its own"),
        }
    }

    /// Its caller waits for the ending, until it says that it has shown it.
    async fn post(&self, thread: ThreadId, key: InputKey, message: Message) -> Reply {
        if let Some(agent) = &message.agent
            && let Err(error) =
                self.endings.expect(&inputs::place(thread), agent, &message.text, Some(&key)).await
        {
            return Reply::from(&error);
        }
        self.append(thread, key, InputBody::Message(message)).await
    }

    async fn put(&self, thread: ThreadId, body: InputBody) -> Reply {
        self.append(thread, inputs::fresh_key(self.ids.as_ref()), body).await
    }

    async fn append(&self, thread: ThreadId, key: InputKey, body: InputBody) -> Reply {
        let place = inputs::place(thread);
        match inputs::append(&self.journal, self.ids.as_ref(), &place, key, body).await {
            Ok(sequence) => Reply::Accepted(sequence),
            Err(error) => Reply::from(&error),
        }
    }
}

/// Why a message is not for the process that says this of itself.
fn objection(
    status: &Status,
    message: &Message,
    (theirs, their_file): (&Fingerprint, Option<&Path>),
) -> Option<(ErrorCode, String)> {
    let pid = status.pid;
    if status.role == Role::Run {
        let why = format!(
            "process {pid} runs one run on this store and takes no messages; wait for its end"
        );
        return Some((ErrorCode::StoreLocked, why));
    }
    let name = message.agent.as_ref()?;
    let names: Vec<&str> = status.agents.iter().map(|agent| agent.name.as_str()).collect();
    let why_not = status.kept_back.join("\n");
    let Some(known) = status.agents.iter().find(|agent| agent.name == *name) else {
        let reason = match why_not.as_str() {
            "" => String::new(),
            why_not => format!("; if that was done, this is why it is not there:\n{why_not}"),
        };
        let why = format!(
            "the dev with process id {pid} runs {} and not {name}: start it with that agent's file \
             too{reason}",
            names.join(", ")
        );
        return Some((ErrorCode::NotFound, why));
    };
    (known.fingerprint != *theirs).then(|| {
        let why = match known.file.as_deref().zip(their_file) {
            Some((ours, theirs)) if ours != theirs => format!(
                "the dev with process id {pid} runs {name} from {}, not from {}: give one of the two \
                 another `name:`, or run this one on a store of its own (--store)",
                ours.display(),
                theirs.display()
            ),
            _ if why_not.is_empty() => format!(
                "the dev with process id {pid} runs another version of {name}: its --model is \
                 another one"
            ),
            _ => format!(
                "the dev with process id {pid} runs {name} as it was before its files changed, for \
                 they cannot be used:\n{why_not}"
            ),
        };
        (ErrorCode::VersionMismatch, why)
    })
}

impl From<&BusError> for Reply {
    fn from(error: &BusError) -> Self {
        Self::Refused { code: error.code(), why: error.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(reply: Result<Ask, Reply>) -> String {
        match reply {
            Err(Reply::Refused { why, .. }) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_question_is_understood() {
        assert_eq!(understand("{\"version\":1,\"ask\":\"status\"}\n"), Ok(Ask::Status));
    }

    #[test]
    fn another_version_is_told_both_versions_whatever_it_asks() {
        let told = why(understand("{\"version\":7,\"ask\":{\"dance\":{}}}\n"));
        assert!(told.contains("version 7") && told.contains("version 1"), "{told}");
        assert!(why(understand("{}")).contains("version none"));
    }

    #[test]
    fn noise_is_no_question() {
        assert!(why(understand("GET / HTTP/1.1\n")).starts_with("not a question"));
        assert!(why(understand("")).starts_with("not a question"));
        assert!(why(understand("{\"version\":1,\"ask\":{\"dance\":{}}}")).contains("dance"));
    }
}

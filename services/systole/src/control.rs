//! The door to a running process: a socket beside its store, one JSON object a line each way.
//! Whoever finds the store locked asks its holder.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ports::clock::Ids;
use ports::journal::Journal;
use proto::ids::{Sequence, ThreadId};
use proto::input::InputBody;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};

use crate::inputs;

/// The longest line.
const LONGEST: u64 = 64 * 1024;
/// How long either side waits for the other.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is asked.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    /// Append a cancel.
    Cancel {
        /// The thread.
        thread: ThreadId,
        /// Why, for people.
        reason: String,
    },
}

/// What is answered.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reply {
    /// The input lies in the journal.
    Accepted(Sequence),
    /// It does not.
    Refused(String),
}

/// A path short enough for a socket address, whatever the folder's own path is.
struct ShortPath {
    _folder: File,
    path: PathBuf,
}

impl ShortPath {
    fn beside(store: &Path) -> io::Result<Self> {
        let parent = store.parent().filter(|parent| !parent.as_os_str().is_empty());
        let folder = File::open(parent.unwrap_or_else(|| Path::new(".")))?;
        let mut name = store.file_name().unwrap_or_default().to_owned();
        name.push(".sock");
        let path = Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name);
        Ok(Self { _folder: folder, path })
    }
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
        match std::fs::remove_file(&place.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let listener = UnixListener::bind(&place.path)?;
        Ok(Self { listener, place })
    }

    /// Answers whoever comes, one after another.
    pub(crate) async fn serve(self, journal: Arc<dyn Journal>, ids: Arc<dyn Ids>) {
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    let answered = answer(stream, &journal, ids.as_ref());
                    if tokio::time::timeout(PATIENCE, answered).await.is_err() {
                        tracing::debug!("somebody opened the control socket and said nothing");
                    }
                }
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
        if let Err(error) = std::fs::remove_file(&self.place.path) {
            tracing::debug!(%error, "the control socket was removed by somebody else");
        }
    }
}

async fn answer(stream: UnixStream, journal: &Arc<dyn Journal>, ids: &dyn Ids) {
    let (reader, mut writer) = stream.into_split();
    let mut line = String::new();
    let read = BufReader::new(reader.take(LONGEST)).read_line(&mut line).await;
    let reply = match read.map(|_| serde_json::from_str::<Request>(&line)) {
        Ok(Ok(request)) => carry_out(request, journal, ids).await,
        Ok(Err(error)) => Reply::Refused(format!("not a request: {error}")),
        Err(error) => Reply::Refused(error.to_string()),
    };
    let mut line = serde_json::to_vec(&reply).unwrap_or_default();
    line.push(b'\n');
    if let Err(error) = writer.write_all(&line).await {
        tracing::debug!(%error, "the control socket's caller is gone");
    }
}

async fn carry_out(request: Request, journal: &Arc<dyn Journal>, ids: &dyn Ids) -> Reply {
    let Request::Cancel { thread, reason } = request;
    let body = InputBody::Cancel { reason };
    let key = inputs::fresh_key(ids);
    match inputs::append(journal, ids, &inputs::place(thread), key, body).await {
        Ok(sequence) => Reply::Accepted(sequence),
        Err(error) => Reply::Refused(error.to_string()),
    }
}

/// Asks the process that holds the store; `None` when there is none.
pub(crate) async fn ask(store: &Path, request: &Request) -> io::Result<Option<Reply>> {
    let place = match ShortPath::beside(store) {
        Ok(place) => place,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let stream = match UnixStream::connect(&place.path).await {
        Ok(stream) => stream,
        Err(error) if is_nobody(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let asked = async {
        let (reader, mut writer) = stream.into_split();
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        writer.write_all(&line).await?;
        let mut answer = String::new();
        BufReader::new(reader.take(LONGEST)).read_line(&mut answer).await?;
        Ok(Some(serde_json::from_str(&answer)?))
    };
    tokio::time::timeout(PATIENCE, asked)
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

fn is_nobody(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

//! Live text of a thread that another process runs.

use std::io;
use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use ports::live::Subscription;
use proto::ids::ThreadRef;
use service_runtime::tasks::TaskSet;
use tokio::io::BufReader;
use tokio::net::unix::OwnedReadHalf;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use super::call::connect;
use super::wire::{Ask, Asked, PATIENCE, Reply, VERSION, read_line, write_line};

/// Pieces that wait to be shown; beyond it the newest are dropped, the journal has the whole.
const WAITING: usize = 1024;
/// The longest silence of a holder that lives.
const SILENCE: Duration = PATIENCE;

/// A followed thread.
pub(crate) struct DoorLive {
    pieces: mpsc::Receiver<Bytes>,
    place: ThreadRef,
    holder: watch::Receiver<bool>,
    _reading: TaskSet,
}

impl DoorLive {
    /// Follows a thread from this moment on; `None` when nobody holds the store.
    pub(crate) async fn open(store: &Path, place: &ThreadRef) -> io::Result<Option<Self>> {
        let Some(stream) = connect(store).await? else { return Ok(None) };
        let (reader, mut writer) = stream.into_split();
        let ask = Ask::Follow { thread: place.thread };
        write_line(&mut writer, &Asked { version: VERSION, ask }).await?;
        let mut reader = BufReader::new(reader);
        // The first word says that from here on nothing is missed.
        said(&mut reader).await?;
        let (tell, pieces) = mpsc::channel(WAITING);
        let (lives, holder) = watch::channel(true);
        let mut reading = TaskSet::new();
        reading.start("followed thread", async move {
            // Held as long as it is read: closing it would end the conversation.
            let _writer = writer;
            while let Ok(piece) = said(&mut reader).await {
                if let Some(piece) = piece
                    && matches!(tell.try_send(piece), Err(mpsc::error::TrySendError::Closed(_)))
                {
                    return;
                }
            }
            lives.send_replace(false);
        });
        Ok(Some(Self { pieces, place: place.clone(), holder, _reading: reading }))
    }

    /// Turns false when the process that runs the thread is gone.
    pub(crate) fn holder(&self) -> watch::Receiver<bool> {
        self.holder.clone()
    }
}

/// A piece, or nothing in a silent moment.
async fn said(reader: &mut BufReader<OwnedReadHalf>) -> io::Result<Option<Bytes>> {
    let line = timeout(SILENCE, read_line(reader)).await;
    let line = line.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
    let line = line.ok_or(io::ErrorKind::UnexpectedEof)?;
    match serde_json::from_str(&line)? {
        Reply::Live(piece) => Ok(Some(serde_json::to_vec(&piece)?.into())),
        Reply::Beat => Ok(None),
        Reply::Refused { why, .. } => Err(io::Error::other(why)),
        Reply::Accepted(_) | Reply::Status(_) => {
            Err(io::Error::other("an answer to another question"))
        }
    }
}

#[async_trait]
impl Subscription for DoorLive {
    async fn next(&mut self) -> Option<(ThreadRef, Bytes)> {
        let piece = self.pieces.recv().await?;
        Some((self.place.clone(), piece))
    }
}

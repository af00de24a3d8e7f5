//! The caller's side.

use std::io;
use std::path::Path;

use tokio::io::BufReader;
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::path::ShortPath;
use super::wire::{Ask, Asked, PATIENCE, Reply, Status, VERSION, read_line, write_line};

/// Asks the process that holds the store; `None` when there is none.
pub(crate) async fn ask(store: &Path, ask: Ask) -> io::Result<Option<Reply>> {
    let Some(mut stream) = connect(store).await? else { return Ok(None) };
    write_line(&mut stream, &Asked { version: VERSION, ask }).await?;
    let mut reader = BufReader::new(stream);
    let line = timeout(PATIENCE, read_line(&mut reader)).await;
    let line = line.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
    let line = line.ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok(Some(serde_json::from_str(&line)?))
}

/// Who holds the store, if anybody does and can be asked.
pub(crate) async fn status(store: &Path) -> io::Result<Option<Status>> {
    match ask(store, Ask::Status).await? {
        Some(Reply::Status(status)) => Ok(Some(status)),
        Some(Reply::Refused { why, .. }) => Err(io::Error::other(why)),
        Some(Reply::Accepted(_) | Reply::Live(_) | Reply::Beat) => {
            Err(io::Error::other("an answer to another question"))
        }
        None => Ok(None),
    }
}

/// A conversation; `None` when nobody holds the store.
pub(super) async fn connect(store: &Path) -> io::Result<Option<UnixStream>> {
    let place = match ShortPath::beside(store) {
        Ok(place) => place,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    match UnixStream::connect(&place.path).await {
        Ok(stream) => Ok(Some(stream)),
        Err(error) if is_nobody(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_nobody(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

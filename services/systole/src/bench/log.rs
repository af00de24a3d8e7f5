//! A bare log: whatever waits is written at once, synced once, and then answered.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// Most records of one sync.
const BATCH: usize = 512;

type Entry = (Vec<u8>, oneshot::Sender<()>);

/// The log's handle.
#[derive(Clone)]
pub(crate) struct Log(mpsc::Sender<Entry>);

impl Log {
    /// Creates the file and starts its one writer.
    pub(crate) fn create(path: &Path) -> io::Result<(Self, JoinHandle<io::Result<()>>)> {
        let file = File::create(path)?;
        let (sender, inbox) = mpsc::channel(BATCH);
        Ok((Self(sender), tokio::task::spawn_blocking(move || write(file, inbox))))
    }

    /// Answers once the record is synced; `false` when the log has failed.
    pub(crate) async fn append(&self, bytes: Vec<u8>) -> bool {
        let (tell, told) = oneshot::channel();
        self.0.send((bytes, tell)).await.is_ok() && told.await.is_ok()
    }
}

fn write(mut file: File, mut inbox: mpsc::Receiver<Entry>) -> io::Result<()> {
    let mut batch = Vec::with_capacity(BATCH);
    while inbox.blocking_recv_many(&mut batch, BATCH) > 0 {
        let bytes: Vec<u8> = batch.iter().flat_map(|(bytes, _)| bytes.iter().copied()).collect();
        file.write_all(&bytes)?;
        file.sync_data()?;
        for (_, tell) in batch.drain(..) {
            // Whoever appended it may be gone.
            tell.send(()).unwrap_or_default();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_was_answered_lies_in_the_file_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let (log, writer) = Log::create(&path).unwrap();
        for part in ["a", "b", "c"] {
            assert!(log.append(part.as_bytes().to_vec()).await);
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "abc");
        drop(log);
        writer.await.unwrap().unwrap();
    }
}

//! The reading threads. Each has a connection of its own, which sees every commit that was
//! answered before the read began.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use ports::BusError;
use rusqlite::Connection;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;

use crate::fault::fault;
use crate::guarded::Guarded;
use crate::writer::closed;

/// Reads that may wait or run; callers beyond wait their turn.
const ROOM: usize = 512;

type Look = Box<dyn FnOnce(&Connection) + Send>;

struct Lane {
    sender: Sender<Look>,
    busy: Arc<AtomicUsize>,
    thread: JoinHandle<()>,
}

/// A few threads that read.
pub(crate) struct Readers {
    lanes: Guarded<Vec<Lane>>,
    room: Semaphore,
    deadline: Duration,
}

impl Readers {
    /// One thread per connection.
    pub(crate) fn start(connections: Vec<Connection>, deadline: Duration) -> std::io::Result<Self> {
        let lanes = connections.into_iter().map(Lane::start).collect::<std::io::Result<_>>()?;
        Ok(Self { lanes: Guarded::new(lanes), room: Semaphore::new(ROOM), deadline })
    }

    /// Answers with what `read` finds.
    pub(crate) async fn run<T, F>(&self, read: F) -> Result<T, BusError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        let late = || BusError::Unavailable(format!("no answer within {:?}", self.deadline));
        let outcome = timeout(self.deadline, async {
            let Ok(_room) = self.room.acquire().await else { return Err(closed()) };
            let (reply, answer) = oneshot::channel();
            self.send(Box::new(move |conn| drop(reply.send(read(conn)))))?;
            let found = answer.await.map_err(|_ended| closed())?;
            found.map_err(|error| fault(&error))
        });
        outcome.await.map_err(|_elapsed| late())?
    }

    /// Gives the read to the thread with the least to do.
    fn send(&self, look: Look) -> Result<(), BusError> {
        self.lanes.with(|lanes| {
            let lane = lanes.iter().min_by_key(|lane| lane.busy.load(Ordering::Relaxed));
            let lane = lane.ok_or_else(closed)?;
            lane.busy.fetch_add(1, Ordering::Relaxed);
            lane.sender.send(look).map_err(|_ended| closed())
        })
    }

    /// Ends the threads and closes their connections.
    pub(crate) fn close(&self) {
        self.room.close();
        for Lane { sender, thread, .. } in self.lanes.with(std::mem::take) {
            drop(sender);
            if thread.join().is_err() {
                tracing::error!("a reader of the store had panicked");
            }
        }
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.close();
    }
}

impl Lane {
    fn start(conn: Connection) -> std::io::Result<Self> {
        let (sender, inbox) = channel::<Look>();
        let busy = Arc::new(AtomicUsize::new(0));
        let done = Arc::clone(&busy);
        let thread =
            std::thread::Builder::new().name("store-reader".to_owned()).spawn(move || {
                for look in inbox {
                    look(&conn);
                    done.fetch_sub(1, Ordering::Relaxed);
                }
            })?;
        Ok(Self { sender, busy, thread })
    }
}

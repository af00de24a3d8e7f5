//! The way to the one writing thread.

use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;
use std::time::Duration;

use ports::BusError;
use ports::journal::AppendError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::timeout;

use crate::commit::Tx;
use crate::guarded::Guarded;

/// Bytes that may wait for the writer, in units of [`UNIT`]; callers beyond wait their turn.
const ROOM: u32 = 128 * 1024;
/// One command takes at least one unit.
const UNIT: usize = 1024;

/// Whether an answer waits for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Promise {
    /// Answered when it is as durable as the options say.
    Durable,
    /// Answered when it survives the process. A power cut may take it, but never it alone: what
    /// was answered later is lost with it.
    Soft,
}

/// Work that the writer does in one of its transactions.
pub(crate) trait Work: Send {
    /// Executes it; executed again if the transaction failed for somebody else's reason.
    fn run(&mut self, tx: &mut Tx<'_>) -> rusqlite::Result<()>;
    /// Answers the caller.
    fn finish(self: Box<Self>, outcome: Result<(), BusError>);
    /// Its share of a batch.
    fn bytes(&self) -> usize;
    /// What its answer promises.
    fn promise(&self) -> Promise;
}

/// What the writer is told.
pub(crate) enum Message {
    /// Do this.
    Work(Box<dyn Work>),
    /// Acks, text or samples wait to be written behind.
    Behind,
    /// Write all that waits, let go of the file and answer.
    Close(oneshot::Sender<Result<(), BusError>>),
}

/// Why a caller got no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// It did not happen.
    Not(BusError),
    /// It may have happened, or may still.
    Unknown(String),
}

impl From<Trouble> for BusError {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Not(error) => error,
            Trouble::Unknown(why) => Self::Unavailable(why),
        }
    }
}

impl From<Trouble> for AppendError {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Not(error) => Self::Bus(error),
            Trouble::Unknown(why) => Self::NoAnswer(why),
        }
    }
}

/// The handle of the writing thread.
pub(crate) struct Writer {
    sender: Guarded<Option<Sender<Message>>>,
    thread: Guarded<Option<JoinHandle<()>>>,
    room: Arc<Semaphore>,
    deadline: Duration,
}

impl Writer {
    pub(crate) fn new(sender: Sender<Message>, thread: JoinHandle<()>, deadline: Duration) -> Self {
        Self {
            sender: Guarded::new(Some(sender)),
            thread: Guarded::new(Some(thread)),
            room: Arc::new(Semaphore::new(usize::try_from(ROOM).unwrap_or(1))),
            deadline,
        }
    }

    /// Has `work` done in a transaction and answers with its result once that is committed.
    pub(crate) async fn run<T, F>(
        &self,
        promise: Promise,
        bytes: usize,
        work: F,
    ) -> Result<T, Trouble>
    where
        T: Send + 'static,
        F: FnMut(&mut Tx<'_>) -> rusqlite::Result<T> + Send + 'static,
    {
        let room = self.enter(bytes).await?;
        let (reply, answer) = oneshot::channel();
        let job = Job { work, result: None, reply, bytes, promise, _room: room };
        self.send(Message::Work(Box::new(job))).map_err(Trouble::Not)?;
        match timeout(self.deadline, answer).await {
            Ok(Ok(Ok(result))) => Ok(result),
            Ok(Ok(Err(BusError::Unavailable(why)))) => Err(Trouble::Unknown(why)),
            Ok(Ok(Err(error))) => Err(Trouble::Not(error)),
            Ok(Err(_)) => Err(Trouble::Unknown("the writer has stopped".to_owned())),
            Err(_) => Err(Trouble::Unknown(format!("no answer within {:?}", self.deadline))),
        }
    }

    async fn enter(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Trouble> {
        let units = u32::try_from(bytes / UNIT).unwrap_or(ROOM).saturating_add(1).min(ROOM);
        let room = Arc::clone(&self.room).acquire_many_owned(units);
        match timeout(self.deadline, room).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) => Err(Trouble::Not(closed())),
            Err(_) => {
                let why = format!("too much waits to be written, for {:?}", self.deadline);
                Err(Trouble::Not(BusError::Unavailable(why)))
            }
        }
    }

    /// Tells the writer something that nobody waits for.
    pub(crate) fn send(&self, message: Message) -> Result<(), BusError> {
        let sent = self
            .sender
            .with(|sender| sender.as_ref().is_some_and(|sender| sender.send(message).is_ok()));
        if sent { Ok(()) } else { Err(closed()) }
    }

    /// An error once the bus is closed.
    pub(crate) fn check_open(&self) -> Result<(), BusError> {
        if self.sender.with(|sender| sender.is_some()) { Ok(()) } else { Err(closed()) }
    }

    /// Refuses all that comes later, has the rest written and the file let go.
    pub(crate) async fn close(&self) -> Result<(), BusError> {
        let Some(sender) = self.sender.with(Option::take) else { return Ok(()) };
        self.room.close();
        let (reply, answer) = oneshot::channel();
        if sender.send(Message::Close(reply)).is_err() {
            return Err(closed());
        }
        match timeout(self.deadline, answer).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(closed()),
            Err(_) => Err(BusError::Unavailable("the writer does not end".to_owned())),
        }
    }
}

impl Drop for Writer {
    /// Waits for the writer, so that the file is free when the bus is gone.
    fn drop(&mut self) {
        self.sender.with(Option::take);
        if let Some(thread) = self.thread.with(Option::take)
            && thread.join().is_err()
        {
            tracing::error!("the writer of the store had panicked");
        }
    }
}

/// The answer of a bus that was closed.
pub(crate) fn closed() -> BusError {
    BusError::Unavailable("the store is closed".to_owned())
}

struct Job<T, F> {
    work: F,
    result: Option<T>,
    reply: oneshot::Sender<Result<T, BusError>>,
    bytes: usize,
    promise: Promise,
    _room: OwnedSemaphorePermit,
}

impl<T, F> Work for Job<T, F>
where
    T: Send,
    F: FnMut(&mut Tx<'_>) -> rusqlite::Result<T> + Send,
{
    fn run(&mut self, tx: &mut Tx<'_>) -> rusqlite::Result<()> {
        self.result = Some((self.work)(tx)?);
        Ok(())
    }

    fn finish(self: Box<Self>, outcome: Result<(), BusError>) {
        let Self { result, reply, .. } = *self;
        let missing = || BusError::Unavailable("the work was not done".to_owned());
        let answer = outcome.and_then(|()| result.ok_or_else(missing));
        // A caller that went away has dropped its end; the work is done all the same.
        drop(reply.send(answer));
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn promise(&self) -> Promise {
        self.promise
    }
}

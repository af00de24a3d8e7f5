//! The ordered records of threads.

use async_trait::async_trait;
use bytes::Bytes;
use proto::envelope::{DecodeError, Envelope};
use proto::ids::{Nonce, Sequence, TenantId, ThreadRef};
use proto::record::Placed;
use proto::subject::Subject;
use proto::time::Timestamp;

use crate::BusError;

/// What must be true for an append to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fence {
    /// Nothing.
    None,
    /// The last record of the thread's `plan.>` chain has this sequence; `NONE` = no record yet.
    Plan(Sequence),
    /// The last record of exactly this subject has this sequence; `NONE` = no record yet.
    Subject(Sequence),
}

/// One record to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Append {
    /// Where.
    pub subject: Subject,
    /// The encoded envelope.
    pub payload: Bytes,
    /// The nonce inside the payload.
    pub nonce: Nonce,
    /// What must be true.
    pub fence: Fence,
    /// Deduplication id: a second append with the same id within the window (two minutes at least)
    /// is acknowledged as [`Appended::duplicate`] and not written.
    pub dedup: Option<String>,
}

/// A durable write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Where it lies. For a duplicate: where the first one lies.
    pub sequence: Sequence,
    /// Whether it was there already.
    pub duplicate: bool,
}

/// An append that did not happen, or may not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The fence did not hold. `last` is the sequence that stands there, when the bus names it.
    #[error("the fence did not hold, the last sequence is {last:?}")]
    Fenced {
        /// The sequence in the way.
        last: Option<Sequence>,
    },
    /// No answer came. The record may land later; repeat the identical append to find out.
    #[error("the append got no answer: {0}")]
    NoAnswer(String),
    /// It did not happen.
    #[error(transparent)]
    Bus(#[from] BusError),
}

/// A record as it lies in the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its place.
    pub sequence: Sequence,
    /// Where.
    pub subject: Subject,
    /// When the bus stored it, in server time.
    pub at: Timestamp,
    /// The encoded envelope; anything, when it was written by a stranger.
    pub payload: Bytes,
}

impl Stored {
    /// The record in it, with its place.
    pub fn placed(&self) -> Result<Placed, DecodeError> {
        let Envelope { nonce, body, .. } = Envelope::decode(&self.payload)?;
        Ok(Placed { sequence: self.sequence, at: self.at, nonce, record: body })
    }
}

/// The ordered, fenced, durable records of threads.
#[async_trait]
pub trait Journal: Send + Sync {
    /// Writes one record. When it answers `Ok` the record is durable and will be delivered to every
    /// queue that covers its subject.
    async fn append(&self, append: Append) -> Result<Appended, AppendError>;

    /// All records of a thread from sequence `from` on, in order, without `sched`.
    ///
    /// May lag behind the newest append unless `floor` is given: a successful answer contains
    /// everything up to and including `floor`, and where that lies above `from` it may end there. A
    /// floor that was purged or lost counts as contained once the adapter has asked the leader.
    async fn read(
        &self,
        thread: &ThreadRef,
        from: Sequence,
        floor: Sequence,
    ) -> Result<Vec<Stored>, BusError>;

    /// The newest record of one subject, never stale.
    async fn last(&self, subject: &Subject) -> Result<Option<Stored>, BusError>;

    /// Sets the thread's one schedule: a `tick` record appears at `at` (server time), or at once if
    /// that is past. Replaces an earlier schedule. The fence is checked like an append's.
    async fn schedule(
        &self,
        thread: &ThreadRef,
        at: Timestamp,
        fence: Fence,
    ) -> Result<(), AppendError>;

    /// When the thread's schedule will fire, never stale.
    async fn scheduled(&self, thread: &ThreadRef) -> Result<Option<Timestamp>, BusError>;

    /// Removes the thread's records with sequences up to and including `up_to`.
    async fn purge(&self, thread: &ThreadRef, up_to: Sequence) -> Result<(), BusError>;

    /// Threads of a tenant with at least one record, newest first, at most `limit`.
    async fn threads(&self, tenant: &TenantId, limit: usize) -> Result<Vec<ThreadRef>, BusError>;

    /// The bus's own clock.
    async fn server_time(&self) -> Result<Timestamp, BusError>;

    /// A number that stays the same as long as no record that was read can have been lost, and `None`
    /// where nobody can tell. Whoever has read a record need not look whether it is still there while
    /// the number is the one from before that read.
    fn unbroken(&self) -> Option<u64> {
        None
    }
}

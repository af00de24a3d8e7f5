//! What the rules are written with.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use ports::journal::{Append, AppendError, Appended, Fence, Stored};
use ports::queues::{Delivery, Queue};
use proto::envelope::Envelope;
use proto::ids::{
    InstanceId, Nonce, Partition, Sequence, TenantId, ThreadId, ThreadRef, ToolCallId, ToolName,
};
use proto::record::Record;
use proto::subject::{Leaf, Subject};
use tokio::time::Instant;

use super::{Broken, BusWorld, Outcome, Peer};

pub(super) const PART: Partition = Partition(0);
pub(super) const INBOX: Queue = Queue::Inbox(PART);
pub(super) const PROGRESS: Queue = Queue::Progress(PART);
pub(super) const MOMENT: Duration = Duration::from_millis(20);

static NONCES: AtomicU64 = AtomicU64::new(1);

pub(super) fn name(text: &str) -> InstanceId {
    InstanceId::new(text).expect("a valid name")
}

pub(super) fn tenant(text: &str) -> TenantId {
    TenantId::new(text).expect("a valid name")
}

pub(super) fn tool(text: &str) -> ToolName {
    ToolName::new(text).expect("a valid name")
}

pub(super) fn call_id(text: &str) -> ToolCallId {
    ToolCallId::new(text).expect("nine letters")
}

/// The `n`th thread; a higher one is younger.
pub(super) fn thread(n: u64) -> ThreadRef {
    let thread = ThreadId::from_parts(1_767_225_600_000 + n, u128::from(n));
    ThreadRef { partition: PART, tenant: tenant("acme"), thread }
}

pub(super) fn subject(leaf: Leaf) -> Subject {
    Subject::new(thread(1), leaf)
}

pub(super) fn nonce() -> Nonce {
    let number = NONCES.fetch_add(1, Ordering::Relaxed);
    Nonce::new(format!("{number:016x}")).expect("sixteen hex digits")
}

/// A record with a payload of its own.
pub(super) fn record(subject: Subject, fence: Fence) -> Append {
    let nonce = nonce();
    let payload = Envelope::new(nonce.clone(), None, Record::Tick).encode().into();
    Append { subject, payload, nonce, fence, dedup: None }
}

pub(super) fn with_id(mut append: Append, id: &str) -> Append {
    append.dedup = Some(id.to_owned());
    append
}

pub(super) async fn peer(world: &dyn BusWorld, text: &str) -> Peer {
    world.peer(&name(text)).await
}

impl Peer {
    /// Appends to the first thread without a fence.
    pub(super) async fn put(&self, leaf: Leaf) -> Result<Sequence, AppendError> {
        self.put_in(subject(leaf)).await
    }

    pub(super) async fn put_in(&self, subject: Subject) -> Result<Sequence, AppendError> {
        let done = self.journal.append(record(subject, Fence::None)).await?;
        Ok(done.sequence)
    }

    pub(super) async fn try_put(&self, leaf: Leaf, fence: Fence) -> Result<Appended, AppendError> {
        self.journal.append(record(subject(leaf), fence)).await
    }

    /// Everything in a thread, up to `floor` at least.
    pub(super) async fn all(&self, n: u64, floor: Sequence) -> Result<Vec<Stored>, Broken> {
        Ok(self.journal.read(&thread(n), Sequence::NONE, floor).await?)
    }

    /// One delivery, or none within `wait`.
    pub(super) async fn pull(
        &self,
        queue: &Queue,
        wait: Duration,
    ) -> Result<Option<Delivery>, Broken> {
        Ok(self.queues.pull(queue, 1, wait).await?.pop())
    }

    /// One delivery within the world's patience.
    pub(super) async fn must_pull(
        &self,
        queue: &Queue,
        wait: Duration,
        what: &str,
    ) -> Result<Delivery, Broken> {
        let found = self.pull(queue, wait).await?;
        found.ok_or_else(|| Broken::Violated(format!("{what}: nothing came")))
    }
}

pub(super) fn places(records: &[Stored]) -> Vec<Sequence> {
    records.iter().map(|stored| stored.sequence).collect()
}

#[expect(clippy::needless_pass_by_value, reason = "rules compare values made on the spot")]
pub(super) fn same<T: PartialEq + Debug>(what: &str, found: T, wanted: T) -> Outcome {
    if found == wanted {
        return Ok(());
    }
    Err(Broken::Violated(format!("{what}: found {found:?}, wanted {wanted:?}")))
}

pub(super) fn holds(what: &str, condition: bool) -> Outcome {
    if condition { Ok(()) } else { Err(Broken::Violated(what.to_owned())) }
}

/// The fence refused; if the refusal names a sequence, it is the right one.
pub(super) fn refused(
    what: &str,
    answer: &Result<Appended, AppendError>,
    last: Sequence,
) -> Outcome {
    match answer {
        Err(AppendError::Fenced { last: None }) => Ok(()),
        Err(AppendError::Fenced { last: Some(named) }) => {
            same(&format!("{what}: the sequence in the refusal"), *named, last)
        }
        Ok(_) | Err(AppendError::NoAnswer(_) | AppendError::Bus(_)) => {
            Err(Broken::Violated(format!("{what}: wanted a refusal by the fence, got {answer:?}")))
        }
    }
}

/// Asks again and again until `look` finds something.
pub(super) async fn until<T>(
    patience: Duration,
    what: &str,
    mut look: impl AsyncFnMut() -> Result<Option<T>, Broken>,
) -> Result<T, Broken> {
    let end = Instant::now() + patience;
    loop {
        if let Some(found) = look().await? {
            return Ok(found);
        }
        if Instant::now() >= end {
            return Err(Broken::Violated(format!("{what}: not within {patience:?}")));
        }
        tokio::time::sleep(MOMENT).await;
    }
}

pub(super) fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

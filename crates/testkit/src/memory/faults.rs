//! What may go wrong with one operation of one process.

use std::time::Duration;

use ports::journal::Stored;
use ports::queues::Queue;
use proto::ids::{InstanceId, ThreadRef};
use proto::subject::Leaf;
use proto::time::Timestamp;

/// The kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OpKind {
    /// `Journal::append`.
    Append,
    /// `Journal::read`.
    Read,
    /// `Journal::last`.
    Last,
    /// `Journal::schedule`.
    Schedule,
    /// `Journal::scheduled`.
    Scheduled,
    /// `Journal::purge`, `threads`, `server_time`.
    Upkeep,
    /// `Queues::pull`.
    Pull,
    /// `Queues::ack`.
    Ack,
    /// `Queues::nak`.
    Nak,
    /// `Queues::progress`.
    Progress,
    /// `Live::publish`.
    Publish,
    /// `Live::subscribe`, `answer`.
    Listen,
    /// `Live::ask`.
    Ask,
    /// `Artifacts`.
    Artifact,
    /// `Registry`.
    Offer,
    /// `Freezes`.
    Freeze,
    /// A reading call of `WorkingMemory`.
    Recall,
    /// A writing call of `WorkingMemory`.
    Remember,
}

/// An operation that is about to happen.
#[derive(Clone, Copy, Debug)]
pub struct Op<'a> {
    /// What.
    pub kind: OpKind,
    /// Where, for operations on one subject.
    pub leaf: Option<&'a Leaf>,
    /// Whose, for operations on one thread.
    pub thread: Option<&'a ThreadRef>,
    /// Which queue, for pulls.
    pub queue: Option<&'a Queue>,
}

/// When an append whose answer is lost takes place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Landing {
    /// Never.
    Never,
    /// At once.
    Now,
    /// After its caller gave up waiting, if its fence still holds by then.
    After(Duration),
}

/// What happens to an operation. One that makes no sense for the operation is passed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// The process dies before it.
    CrashBefore,
    /// The process dies after it, before it hears the answer.
    CrashAfter,
    /// Nothing answers; nothing happened.
    Unavailable,
    /// It happens later.
    Delay(Duration),
    /// It happens at once, the answer comes later.
    DelayAnswer(Duration),
    /// An append or schedule gets no answer.
    LoseAnswer(Landing),
    /// An append or schedule is refused, and the refusal names no sequence.
    RefuseWithoutNumber,
    /// A read misses the newest records of the thread, as far as its floor allows.
    Stale(usize),
    /// A live message is lost.
    Lose,
    /// What a pull takes stays in the queue for the next puller as well.
    DeliverTwice,
    /// A pull takes the newest records first.
    NewestFirst,
}

/// What becomes of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Firing {
    /// It fires when it is due.
    OnTime,
    /// It fires this much too early.
    Early(Duration),
    /// It fires when it is due and once more this much later.
    Twice(Duration),
    /// It never fires.
    Never,
}

/// Decides what goes wrong and watches what happens. Called without any lock held.
pub trait Faults: Send + Sync {
    /// What happens to this operation.
    fn on(&self, process: &InstanceId, op: &Op<'_>) -> Fault {
        let _ = (process, op);
        Fault::None
    }

    /// What becomes of a schedule that is being set.
    fn firing(&self, thread: &ThreadRef, at: Timestamp) -> Firing {
        let _ = (thread, at);
        Firing::OnTime
    }

    /// The process died by [`Fault::CrashBefore`] or [`Fault::CrashAfter`].
    fn crashed(&self, process: &InstanceId) {
        let _ = process;
    }

    /// A record was written.
    fn stored(&self, stored: &Stored) {
        let _ = stored;
    }

    /// A delivery was acked.
    fn acked(&self, process: &InstanceId, queue: &Queue, stored: &Stored) {
        let _ = (process, queue, stored);
    }
}

/// Nothing goes wrong.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFaults;

impl Faults for NoFaults {}

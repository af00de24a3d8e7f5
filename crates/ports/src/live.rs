//! What is said but not kept: live text, hints, and the question whether a planner still lives.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use proto::ids::{InstanceId, ThreadRef};
use proto::live::HeldQuestion;

use crate::BusError;

/// A plain topic; nothing said there is stored.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Topic {
    /// Live text of one thread ([`proto::live::LiveText`]).
    Text(ThreadRef),
    /// Hints for one thread ([`proto::live::Hint`]).
    Control(ThreadRef),
    /// Hints for all threads: what workers and planners listen to.
    AllControl,
}

/// A running subscription; dropping it ends it.
#[async_trait]
pub trait Subscription: Send {
    /// The next message with the thread it belongs to; `None` when the subscription is over.
    /// A reader that is too slow loses the oldest messages, never blocks the writer.
    async fn next(&mut self) -> Option<(ThreadRef, Bytes)>;
}

/// What an owner answers, or does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerAnswer {
    /// It lives and still works on the turn.
    Holding,
    /// It lives and does not.
    NotHolding,
    /// Nobody answers to that name: the process is gone.
    NoResponder,
    /// No answer within the deadline; the process may be paused or cut off.
    Silent,
}

/// Decides for a planner whether it works on a turn.
pub type Holds = Arc<dyn Fn(&HeldQuestion) -> bool + Send + Sync>;

/// Keeps the answer to questions alive; dropping it is being gone.
pub trait Answering: Send + Sync {}

/// Unstored messages.
#[async_trait]
pub trait Live: Send + Sync {
    /// Says something to whoever listens. Losing it is allowed. `topic` is never `AllControl`.
    async fn publish(&self, topic: &Topic, message: Bytes) -> Result<(), BusError>;

    /// Listens from this moment on.
    async fn subscribe(&self, topic: &Topic) -> Result<Box<dyn Subscription>, BusError>;

    /// Answers questions addressed to `me` until the guard is dropped.
    async fn answer(&self, me: &InstanceId, holds: Holds) -> Result<Box<dyn Answering>, BusError>;

    /// Asks `owner` whether it still works on a turn.
    async fn ask(
        &self,
        owner: &InstanceId,
        question: &HeldQuestion,
        patience: Duration,
    ) -> Result<OwnerAnswer, BusError>;
}

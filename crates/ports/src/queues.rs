//! Work as it is handed out: deliveries that are held, kept alive, given back or acknowledged.

use std::time::Duration;

use async_trait::async_trait;
use proto::ids::{Partition, ToolName};

use crate::BusError;
use crate::journal::Stored;

/// A shared queue of one partition.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Queue {
    /// Planners: `in`. Apart from [`Queue::Progress`], so that messages and cancels pass a backlog.
    Inbox(Partition),
    /// Planners: `obs` and `tick`.
    Progress(Partition),
    /// Workers: `plan.tool_call.<tool>`.
    Tool(Partition, ToolName),
}

/// Names one delivery to the adapter that made it; means nothing to others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeliveryToken(pub String);

/// A record handed to one process, which holds it until it acks, gives it back or falls silent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The record.
    pub stored: Stored,
    /// For the calls below.
    pub token: DeliveryToken,
    /// How often it was delivered, from 1, as far as the bus remembers. Proves nothing.
    pub count: u64,
}

/// Shared queues over the journal. Delivery is at least once and in no promised order; a record may
/// come again after its ack, even with `count` 1. Each record goes to one puller at a time while
/// that one stays in touch.
#[async_trait]
pub trait Queues: Send + Sync {
    /// How long a held delivery may go without [`Queues::progress`] before somebody else gets it.
    fn ack_wait(&self) -> Duration;

    /// Up to `max` deliveries; returns as soon as there is one, empty after `wait`.
    /// A caller that drops the future loses nothing: what was under way is redelivered.
    async fn pull(
        &self,
        queue: &Queue,
        max: usize,
        wait: Duration,
    ) -> Result<Vec<Delivery>, BusError>;

    /// The work is done. Idempotent. May be forgotten by a bus that crashes.
    async fn ack(&self, token: &DeliveryToken) -> Result<(), BusError>;

    /// Gives the delivery back, to be delivered after `delay`.
    async fn nak(&self, token: &DeliveryToken, delay: Duration) -> Result<(), BusError>;

    /// Still working: the ack wait of these deliveries starts anew.
    async fn progress(&self, tokens: &[DeliveryToken]) -> Result<(), BusError>;
}

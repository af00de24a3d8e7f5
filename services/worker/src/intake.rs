//! Pulling: one task per queue, no more at once than there are free slots.

use std::sync::Arc;
use std::time::Duration;

use ports::queues::{Delivery, Queue};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::sleep;

use crate::shared::Shared;
use crate::tools::{Tool, Tools};

/// Before a failed pull is tried again.
const PULL_AGAIN: Duration = Duration::from_millis(500);
/// How long a delivery rests that found no slot; another worker may have one.
const NO_SLOT: Duration = Duration::from_millis(200);

/// A delivery with the slot it is worked on in.
pub(crate) struct Taken {
    pub(crate) delivery: Delivery,
    pub(crate) tool: Arc<Tool>,
    pub(crate) permit: Permits,
}

/// A slot of the worker, and one of the tool where it has its own.
pub(crate) struct Permits {
    _worker: OwnedSemaphorePermit,
    _tool: Option<OwnedSemaphorePermit>,
}

/// The queues of a worker's tools.
pub(crate) fn queues(shared: &Shared, tools: &Tools) -> Vec<(Queue, Arc<Tool>)> {
    let of_partition = |partition| {
        tools.iter().map(move |tool| (Queue::Tool(partition, tool.contract.name.clone()), tool))
    };
    shared.config.partitions.iter().copied().flat_map(of_partition).collect()
}

/// Pulls one queue.
pub(crate) struct Intake {
    pub(crate) shared: Arc<Shared>,
    pub(crate) queue: Queue,
    pub(crate) tool: Arc<Tool>,
    pub(crate) tools: Tools,
    pub(crate) slots: Arc<Semaphore>,
    /// The most that one pull takes.
    pub(crate) share: usize,
    pub(crate) sender: mpsc::Sender<Taken>,
}

impl Intake {
    pub(crate) async fn pull(self) {
        loop {
            // Waiting for a slot before the pull leaves calls to workers that are free.
            drop(self.slots.acquire().await);
            if let Some(slots) = &self.tool.slots {
                drop(slots.acquire().await);
            }
            if self.shared.shutdown.is_draining() {
                return;
            }
            let own = self.tool.slots.as_ref().map_or(usize::MAX, |own| own.available_permits());
            let most = self.slots.available_permits().min(own).clamp(1, self.share);
            let wait = self.shared.config.pull_wait;
            match self.shared.ports.queues.pull(&self.queue, most, wait).await {
                Ok(deliveries) => {
                    for delivery in deliveries {
                        self.pass_on(delivery).await;
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "pull failed");
                    sleep(PULL_AGAIN).await;
                }
            }
        }
    }

    async fn pass_on(&self, delivery: Delivery) {
        let Some(permit) = self.permits() else {
            return self.give_back(delivery, NO_SLOT).await;
        };
        // A server may have changed it since the queue was opened.
        let tool = self.tools.get(&self.tool.contract.name);
        let tool = tool.unwrap_or_else(|| Arc::clone(&self.tool));
        if let Err(unsent) = self.sender.send(Taken { delivery, tool, permit }).await {
            self.give_back(unsent.0.delivery, Duration::ZERO).await;
        }
    }

    fn permits(&self) -> Option<Permits> {
        let worker = Arc::clone(&self.slots).try_acquire_owned().ok()?;
        let tool = match &self.tool.slots {
            Some(slots) => Some(Arc::clone(slots).try_acquire_owned().ok()?),
            None => None,
        };
        Some(Permits { _worker: worker, _tool: tool })
    }

    async fn give_back(&self, delivery: Delivery, delay: Duration) {
        if let Err(error) = self.shared.ports.queues.nak(&delivery.token, delay).await {
            tracing::debug!(%error, "a delivery was not given back; it comes back by itself");
        }
    }
}

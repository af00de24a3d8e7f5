//! Pulls deliveries and starts a handling for each, no more than the planner can hold.

use std::sync::Arc;
use std::time::Duration;

use ports::queues::{Delivery, Queue};
use service_runtime::shutdown::Shutdown;
use service_runtime::tasks::TaskSet;
use tokio::sync::OwnedSemaphorePermit;

use crate::handling::handle;
use crate::planner::Shared;

/// Deliveries taken with one pull.
const AT_ONCE: usize = 32;
/// Pause after a pull that failed.
const PULL_AGAIN: Duration = Duration::from_secs(1);

/// Serves one queue until the drain, then waits for its handlings.
pub(crate) async fn take_in(shared: Arc<Shared>, queue: Queue, shutdown: Shutdown) {
    let mut handlings = TaskSet::new();
    while !shutdown.is_draining() {
        let pulled = tokio::select! {
            biased;
            () = shutdown.draining() => break,
            pulled = pull(&shared, &queue) => pulled,
        };
        for (delivery, permit) in pulled {
            let task = handle(Arc::clone(&shared), delivery, permit, shutdown.clone());
            handlings.start("handle", task);
        }
    }
    finish(&shared, &mut handlings, &shutdown).await;
}

/// Waits for what is under way; what is not done within the grace is handed back.
async fn finish(shared: &Shared, handlings: &mut TaskSet, shutdown: &Shutdown) {
    let patience = shared.config.grace;
    let finished = async {
        while !handlings.is_empty() {
            handlings.ended().await;
        }
    };
    if tokio::time::timeout(patience, finished).await.is_err() {
        shutdown.abandon();
        handlings.finish(Duration::from_secs(2)).await;
    }
}

/// One permit is held while waiting; the handlings of further deliveries wait for theirs.
async fn pull(shared: &Shared, queue: &Queue) -> Vec<(Delivery, Option<OwnedSemaphorePermit>)> {
    let Ok(first) = Arc::clone(&shared.handlings).acquire_owned().await else { return Vec::new() };
    let most = shared.handlings.available_permits().saturating_add(1).min(AT_ONCE);
    match shared.ports.queues.pull(queue, most, shared.config.pull_wait).await {
        Ok(deliveries) => {
            shared.contact.there();
            for delivery in &deliveries {
                count(shared, queue, delivery);
            }
            let permits = std::iter::once(Some(first)).chain(std::iter::repeat_with(|| None));
            deliveries.into_iter().zip(permits).collect()
        }
        Err(error) => {
            shared.contact.lost();
            tracing::warn!(%error, ?queue, "pull failed");
            tokio::time::sleep(PULL_AGAIN).await;
            Vec::new()
        }
    }
}

fn count(shared: &Shared, queue: &Queue, delivery: &Delivery) {
    let name = match queue {
        Queue::Inbox(_) => "in",
        Queue::Progress(_) => "progress",
        Queue::Tool(..) => "tool",
    };
    let waited = shared.clock.now(delivery.stored.at).since(delivery.stored.at);
    shared.config.metrics.delivered(name, delivery.count, waited);
}

//! Keeps held deliveries alive, in one paced sweep. Nothing else runs in this task.

use std::sync::Arc;

use ports::queues::Queues;

use crate::held::Held;

/// Tells the bus every third of the ack wait that this process still works on what it holds.
pub(crate) async fn keep_alive(queues: Arc<dyn Queues>, held: Held) {
    let every = queues.ack_wait() / 3;
    loop {
        tokio::time::sleep(every).await;
        let tokens = held.all();
        if tokens.is_empty() {
            continue;
        }
        if let Err(error) = queues.progress(&tokens).await {
            tracing::warn!(%error, held = tokens.len(), "progress was not accepted");
        }
    }
}

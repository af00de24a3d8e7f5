//! Signs of life of calls in work: their leases. A task of its own, so that nothing else delays it.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use crate::running::CallKey;
use crate::shared::Shared;

/// Keeps leases ours, and finds cancels whose hint was lost.
pub(crate) async fn keep_calls(shared: Arc<Shared>) {
    let pause = shared.ports.queues.ack_wait() / 3;
    loop {
        sleep(pause).await;
        for (key, leased) in shared.running.all() {
            keep_call(&shared, &key, leased).await;
        }
    }
}

async fn keep_call(shared: &Shared, key: &CallKey, leased: bool) {
    let (thread, id) = key;
    let working = &shared.ports.working;
    let holder = &shared.config.instance;
    if leased && let Err(error) = working.claim(thread, id, holder, shared.config.lease).await {
        tracing::debug!(%error, tool_call_id = %id, "a lease was not renewed");
    }
    match working.is_cancelled(thread, id).await {
        Ok(true) => shared.running.cancel(key),
        Ok(false) => {}
        Err(error) => tracing::debug!(%error, tool_call_id = %id, "no word on a cancel"),
    }
}

/// Before something that failed is tried again.
pub(crate) const AGAIN: Duration = Duration::from_secs(1);

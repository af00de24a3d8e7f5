//! Signs of life: deliveries that are held, leases of calls in work, and the bus's time. Each has a
//! task of its own, so that none waits for another.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use crate::running::CallKey;
use crate::server_time::MEASURE_EVERY;
use crate::shared::Shared;

/// Deliveries in one sign of life.
const AT_ONCE: usize = 256;

/// Keeps held deliveries ours: three signs of life within one ack wait.
pub(crate) async fn keep_deliveries(shared: Arc<Shared>) {
    let pause = shared.ports.queues.ack_wait() / 3;
    loop {
        sleep(pause).await;
        for tokens in shared.held.all().chunks(AT_ONCE) {
            if let Err(error) = shared.ports.queues.progress(tokens).await {
                tracing::warn!(%error, "held deliveries gave no sign of life");
            }
        }
    }
}

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

/// Measures the bus's time again and again.
pub(crate) async fn measure(shared: Arc<Shared>) {
    loop {
        sleep(MEASURE_EVERY).await;
        if let Err(error) = shared.time.measure(shared.ports.journal.as_ref()).await {
            tracing::warn!(%error, "the bus's time was not measured");
        }
    }
}

/// Before something that failed is tried again.
pub(crate) const AGAIN: Duration = Duration::from_secs(1);

//! Signs of life of calls in work: their leases. A task of its own, so that nothing else delays it.

use std::sync::Arc;
use std::time::Duration;

use proto::time::Timestamp;
use tokio::time::sleep;

use crate::running::{CallKey, Upkeep};
use crate::shared::Shared;

/// Keeps leases ours, and finds cancels whose hint was lost.
pub(crate) async fn keep_calls(shared: Arc<Shared>) {
    let pause = shared.ports.queues.ack_wait() / 3;
    loop {
        sleep(pause).await;
        for (key, leased, upkeep) in shared.running.all() {
            keep_call(&shared, &key, leased).await;
            for kept in &upkeep {
                keep_shared(&shared, kept).await;
            }
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

/// A call that leads a read, or has a place, goes on to.
async fn keep_shared(shared: &Shared, kept: &Upkeep) {
    let (working, lease) = (&shared.ports.working, shared.config.lease);
    if let Some(key) = &kept.read
        && let Err(error) = working.join_read(key, &kept.who, lease, NEVER).await
    {
        tracing::debug!(%error, "the lead of a read was not renewed");
    }
    if let Some((tool, most)) = &kept.place
        && let Err(error) = working.take_place(tool, &kept.who, *most, lease).await
    {
        tracing::debug!(%error, "a place was not renewed");
    }
}

/// No result will do: the lease is to be renewed.
const NEVER: Timestamp = Timestamp(i64::MAX);

/// Before something that failed is tried again.
pub(crate) const AGAIN: Duration = Duration::from_secs(1);

//! Finds active threads that nothing woke, and listens for hints.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ports::journal::Fence;
use ports::live::{Live, Topic};
use proto::ids::{Sequence, ThreadRef};
use proto::live::Hint;
use tokio::sync::Notify;

use crate::load::LoadError;
use crate::planner::Shared;

/// Whether the bus answers, as pulls find out.
#[derive(Debug, Default)]
pub(crate) struct Contact {
    lost: AtomicBool,
    again: Notify,
}

impl Contact {
    /// A pull failed.
    pub(crate) fn lost(&self) {
        self.lost.store(true, Ordering::Relaxed);
    }

    /// A pull was answered.
    pub(crate) fn there(&self) {
        if self.lost.swap(false, Ordering::Relaxed) {
            self.again.notify_one();
        }
    }

    async fn regained(&self) {
        self.again.notified().await;
    }
}

/// Threads looked at in one sweep.
const AT_ONCE: usize = 1000;
/// Pause before listening again after the bus went away.
const LISTEN_AGAIN: Duration = Duration::from_secs(1);

/// At start, when the bus is back, and regularly: measures the clock, and wakes active threads that are overdue by
/// letting their schedule fire at once.
pub(crate) async fn sweep(shared: Arc<Shared>) {
    loop {
        if let Err(error) = shared.clock.measure(shared.ports.journal.as_ref()).await {
            tracing::warn!(%error, "the server's time could not be read");
        }
        match wake_overdue(&shared).await {
            Ok(0) => {}
            Ok(woken) => tracing::info!(woken, "threads were overdue and are woken"),
            Err(error) => tracing::warn!(%error, "the sweep failed"),
        }
        tokio::select! {
            () = tokio::time::sleep(shared.config.sweep_every) => {}
            () = shared.contact.regained() => compare(&shared).await,
        }
    }
}

async fn wake_overdue(shared: &Shared) -> Result<usize, ports::BusError> {
    let now = shared.clock.now(proto::time::Timestamp::default());
    let overdue = shared.ports.working.active(now, AT_ONCE).await?;
    for place in &overdue {
        wake(shared, place, now).await?;
    }
    Ok(overdue.len())
}

/// A bus that was away may have come back without its newest records: every fold of this process is
/// held against the journal, also those of threads at rest, which nothing would wake.
async fn compare(shared: &Shared) {
    let now = shared.clock.now(proto::time::Timestamp::default());
    let places = shared.slots.folded().await;
    tracing::info!(threads = places.len(), "the bus is back; comparing and sweeping");
    for place in places {
        if let Err(error) = compare_one(shared, &place, now).await {
            tracing::warn!(%error, "folds were not compared");
            return;
        }
    }
}

async fn compare_one(
    shared: &Shared,
    place: &ThreadRef,
    now: proto::time::Timestamp,
) -> Result<(), LoadError> {
    let Some(slot) = shared.slots.known(place).await else { return Ok(()) };
    let mut kept = slot.lock().await;
    let thread = shared.loader().load(place, &mut kept, Sequence::NONE).await?;
    if kept.lost.is_some() {
        let fence = Fence::Plan(thread.plan_last);
        if let Err(error) = shared.ports.journal.schedule(place, now, fence).await {
            tracing::debug!(%error, %place, "the wake-up was not written");
        }
    }
    Ok(())
}

/// A schedule in the past fires at once; the tick is then handled like any other.
async fn wake(
    shared: &Shared,
    place: &ThreadRef,
    now: proto::time::Timestamp,
) -> Result<(), ports::BusError> {
    let journal = shared.ports.journal.as_ref();
    let slot = shared.slots.slot(place).await;
    let mut kept = slot.lock().await;
    let thread = match shared.loader().load(place, &mut kept, Sequence::NONE).await {
        Ok(thread) => thread,
        Err(error) => {
            tracing::warn!(%error, %place, "an overdue thread cannot be folded");
            return Ok(());
        }
    };
    if thread.is_at_rest() && kept.lost.is_none() {
        return shared.ports.working.set_active(place, None).await;
    }
    if let Err(error) = journal.schedule(place, now, Fence::Plan(thread.plan_last)).await {
        tracing::debug!(%error, %place, "the wake-up was not written; somebody else is at it");
    }
    Ok(())
}

/// Passes stop hints to the open request of their thread.
pub(crate) async fn listen(shared: Arc<Shared>) {
    loop {
        match shared.ports.live.subscribe(&Topic::AllControl).await {
            Ok(mut hints) => {
                while let Some((place, message)) = hints.next().await {
                    if let Ok(Hint::StopTurn) = serde_json::from_slice::<Hint>(&message) {
                        shared.running.nudge(&place);
                    }
                }
            }
            Err(error) => tracing::warn!(%error, "hints cannot be heard"),
        }
        tokio::time::sleep(LISTEN_AGAIN).await;
    }
}

/// Says a hint; losing it is allowed.
pub(crate) async fn hint(live: &dyn Live, place: &ThreadRef, hint: &Hint) {
    let message = bytes::Bytes::from(serde_json::to_vec(hint).unwrap_or_default());
    if let Err(error) = live.publish(&Topic::Control(place.clone()), message).await {
        tracing::debug!(%error, "a hint was not published");
    }
}

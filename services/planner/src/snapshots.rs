//! Folds kept in working memory, so that whoever loads the thread next reads only what came since,
//! and so that a journal that loses its tail is noticed.
//!
//! A thread is marked when a delivery of it was let go, and written after a pause: a thread that
//! moves on quickly is written once for many records. Losing a snapshot only costs reads.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use ports::BusError;
use ports::working_memory::Snapshot;
use proto::ids::ThreadRef;
use proto::saved::SavedThread;
use tokio::sync::watch;

use crate::planner::Shared;

/// Threads that may wait to be written; more are marked again by their next delivery.
const WAITING: usize = 4096;
/// What the last snapshots may take when the planner stops.
const LAST: Duration = Duration::from_secs(1);

/// When a snapshot is worth its write.
#[derive(Clone, Copy, Debug)]
pub struct SnapshotRule {
    /// Between two writes.
    pub pause: Duration,
    /// Records folded since the last one, at least.
    pub least: usize,
}

impl Default for SnapshotRule {
    fn default() -> Self {
        Self { pause: Duration::from_millis(200), least: 1 }
    }
}

/// Threads whose snapshot is behind.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    behind: watch::Sender<BTreeSet<ThreadRef>>,
}

impl Snapshots {
    /// Has a thread written after the next pause.
    pub(crate) fn mark(&self, place: &ThreadRef) {
        self.behind.send_if_modified(|behind| {
            behind.len() < WAITING && !behind.contains(place) && behind.insert(place.clone())
        });
    }

    fn take(&self) -> BTreeSet<ThreadRef> {
        let mut taken = BTreeSet::new();
        self.behind.send_if_modified(|behind| {
            taken = std::mem::take(behind);
            false
        });
        taken
    }
}

/// Writes what is marked, for ever.
pub(crate) async fn keep(shared: std::sync::Arc<Shared>) {
    let mut marked = shared.snapshots.behind.subscribe();
    loop {
        if marked.wait_for(|behind| !behind.is_empty()).await.is_err() {
            return;
        }
        tokio::time::sleep(shared.config.snapshots.pause).await;
        write(&shared).await;
    }
}

/// Writes what is marked, when the planner stops.
pub(crate) async fn keep_last(shared: &Shared) {
    if tokio::time::timeout(LAST, write(shared)).await.is_err() {
        tracing::debug!("not all snapshots were written");
    }
}

/// A store that does not answer is not asked again for the other threads: they are marked when they
/// move on.
async fn write(shared: &Shared) {
    for place in shared.snapshots.take() {
        if let Err(error) = write_one(shared, &place).await {
            tracing::debug!(%error, %place, "the snapshot was not kept");
            return;
        }
    }
}

async fn write_one(shared: &Shared, place: &ThreadRef) -> Result<(), BusError> {
    let Some(slot) = shared.slots.known(place).await else { return Ok(()) };
    let (thread, unsaved) = {
        let kept = slot.lock().await;
        let Some(thread) = kept.thread.clone() else { return Ok(()) };
        (thread, kept.unsaved)
    };
    if unsaved < shared.config.snapshots.least.max(1) {
        return Ok(());
    }
    let payload = Bytes::from(SavedThread::from(thread.as_ref()).encode());
    let snapshot = Snapshot { sequence: thread.head.sequence, payload };
    drop(thread);
    shared.ports.working.keep_snapshot(place, snapshot).await?;
    shared.config.metrics.folds.kept.inc();
    let mut kept = slot.lock().await;
    kept.unsaved = kept.unsaved.saturating_sub(unsaved);
    Ok(())
}

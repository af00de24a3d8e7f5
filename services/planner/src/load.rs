//! A thread's fold, kept between deliveries and brought up to a floor.
//!
//! A read starts at the last record folded and compares its nonce: sequence numbers of a lost tail
//! are used again, so a fold that does not meet its own last record is dropped. Where this process
//! has no fold, it goes on from the snapshot that some planner kept, by the same rule; without one
//! it folds from the first record.

use std::collections::BTreeMap;
use std::sync::Arc;

use planner_core::Thread;
use ports::BusError;
use ports::journal::{Journal, Stored};
use ports::working_memory::WorkingMemory;
use proto::envelope::{DecodeError, Envelope};
use proto::ids::{Sequence, ThreadRef};
use proto::record::Placed;
use proto::saved::SavedThread;
use tokio::sync::Mutex;

use crate::metrics::{Metrics, Source};

/// Threads kept folded; the rest is folded again when needed.
const KEPT: usize = 4096;

/// A thread that one handling works on at a time.
pub(crate) type Slot = Arc<Mutex<Kept>>;

/// What this process has of a thread.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// The fold; `None` until it is made.
    pub(crate) thread: Option<Arc<Thread>>,
    /// Records folded since the newest snapshot that is known of.
    pub(crate) unsaved: usize,
}

impl Kept {
    /// What a handling has of its thread.
    pub(crate) fn of(thread: Arc<Thread>) -> Self {
        Self { thread: Some(thread), unsaved: 0 }
    }
}

/// Folded threads.
#[derive(Default)]
pub(crate) struct Slots {
    slots: Mutex<BTreeMap<ThreadRef, Slot>>,
}

impl Slots {
    pub(crate) async fn slot(&self, place: &ThreadRef) -> Slot {
        let mut slots = self.slots.lock().await;
        if slots.len() >= KEPT && !slots.contains_key(place) {
            slots.retain(|_, slot| Arc::strong_count(slot) > 1);
        }
        Arc::clone(slots.entry(place.clone()).or_default())
    }

    /// The thread, if this process has something of it.
    pub(crate) async fn known(&self, place: &ThreadRef) -> Option<Slot> {
        self.slots.lock().await.get(place).map(Arc::clone)
    }
}

/// Why a thread cannot be folded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    /// Newer processes wrote to it; this one must not decide.
    #[error("{0}")]
    TooNew(DecodeError),
    /// The bus failed.
    #[error(transparent)]
    Bus(#[from] BusError),
}

/// From what threads are folded.
#[derive(Clone, Copy)]
pub(crate) struct Loader<'a> {
    pub(crate) journal: &'a dyn Journal,
    pub(crate) working: &'a dyn WorkingMemory,
    pub(crate) metrics: &'a Metrics,
}

impl Loader<'_> {
    /// Brings the fold in `kept` up to `floor` at least.
    pub(crate) async fn load(
        self,
        place: &ThreadRef,
        kept: &mut Kept,
        floor: Sequence,
    ) -> Result<Arc<Thread>, LoadError> {
        if let Some(thread) = kept.thread.take()
            && let Some(thread) = self.continued(thread, kept, floor).await?
        {
            return Ok(self.known(Source::Memory, kept, thread));
        }
        if let Some(thread) = self.snapshot(place).await? {
            kept.unsaved = 0;
            if let Some(thread) = self.continued(Arc::new(thread), kept, floor).await? {
                return Ok(self.known(Source::Snapshot, kept, thread));
            }
        }
        let records = self.read(place, Sequence::NONE, floor).await?;
        kept.unsaved = records.len();
        let thread = Arc::new(fold(Thread::new(place.clone()), &records)?);
        Ok(self.known(Source::Journal, kept, thread))
    }

    fn known(self, source: Source, kept: &mut Kept, thread: Arc<Thread>) -> Arc<Thread> {
        self.metrics.folds.folded(source);
        kept.thread = Some(Arc::clone(&thread));
        thread
    }

    async fn read(
        self,
        place: &ThreadRef,
        from: Sequence,
        floor: Sequence,
    ) -> Result<Vec<Stored>, BusError> {
        let records = self.journal.read(place, from, floor).await?;
        self.metrics.folds.read(records.len());
        Ok(records)
    }

    /// The snapshot, when there is one that this build can go on from. One that no build can read is
    /// passed over, and so is a store that does not answer: the journal has it all.
    async fn snapshot(self, place: &ThreadRef) -> Result<Option<Thread>, LoadError> {
        let kept = match self.working.snapshot(place).await {
            Ok(kept) => kept,
            Err(error) => {
                tracing::debug!(%error, %place, "the snapshot is not known");
                return Ok(None);
            }
        };
        let Some(kept) = kept else { return Ok(None) };
        match SavedThread::decode(&kept.payload) {
            Ok(saved) if saved.place == *place => Ok(Some(Thread::from(saved))),
            Ok(saved) => {
                tracing::warn!(%place, of = %saved.place, "the snapshot is another thread's");
                Ok(None)
            }
            Err(error @ DecodeError::TooNew { .. }) => Err(LoadError::TooNew(error)),
            Err(error @ DecodeError::Malformed(_)) => {
                tracing::warn!(%error, %place, "the snapshot is passed over");
                Ok(None)
            }
        }
    }

    /// The fold with what came since; `None` when the journal is not the one it was folded from.
    async fn continued(
        self,
        thread: Arc<Thread>,
        kept: &mut Kept,
        floor: Sequence,
    ) -> Result<Option<Arc<Thread>>, LoadError> {
        if thread.head.sequence == Sequence::NONE {
            return Ok(None);
        }
        let records = self.read(&thread.place, thread.head.sequence, floor).await?;
        let same = records.first().is_some_and(|first| is_head(&thread, first));
        if !same {
            tracing::warn!(thread = %thread.place, "the journal changed under the fold; folding anew");
            return Ok(None);
        }
        if records.len() == 1 {
            return Ok(Some(thread));
        }
        kept.unsaved = kept.unsaved.saturating_add(records.len()).saturating_sub(1);
        Ok(Some(Arc::new(fold(Arc::unwrap_or_clone(thread), &records)?)))
    }
}

/// Whether this is the record that the fold ends with.
fn is_head(thread: &Thread, record: &Stored) -> bool {
    record.sequence == thread.head.sequence
        && Envelope::nonce_of(&record.payload) == thread.head.nonce
}

fn fold(mut thread: Thread, records: &[Stored]) -> Result<Thread, LoadError> {
    for stored in records {
        let leaf = &stored.subject.leaf;
        match Envelope::decode(&stored.payload) {
            Ok(envelope) => {
                let placed = Placed {
                    sequence: stored.sequence,
                    at: stored.at,
                    nonce: envelope.nonce,
                    record: envelope.body,
                };
                thread.apply(leaf, &placed);
            }
            Err(error @ DecodeError::TooNew { .. }) => return Err(LoadError::TooNew(error)),
            Err(DecodeError::Malformed(why)) => {
                thread.apply_poison(leaf, stored.sequence, stored.at, why);
            }
        }
    }
    Ok(thread)
}

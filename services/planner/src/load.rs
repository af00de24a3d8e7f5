//! A thread's fold, kept between deliveries and brought up to a floor.
//!
//! A read starts at the last record folded and compares its nonce: sequence numbers of a lost tail
//! are used again, so a fold that does not meet its own last record is dropped.

use std::collections::BTreeMap;
use std::sync::Arc;

use planner_core::Thread;
use ports::BusError;
use ports::journal::{Journal, Stored};
use proto::envelope::{DecodeError, Envelope};
use proto::ids::{Sequence, ThreadRef};
use proto::record::Placed;
use tokio::sync::Mutex;

/// Threads kept folded; the rest is folded again when needed.
const KEPT: usize = 4096;

/// A thread that one handling works on at a time; `None` until it is folded.
pub(crate) type Slot = Arc<Mutex<Option<Arc<Thread>>>>;

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

/// Brings the fold in `kept` up to `floor` at least.
pub(crate) async fn load(
    journal: &dyn Journal,
    place: &ThreadRef,
    kept: &mut Option<Arc<Thread>>,
    floor: Sequence,
) -> Result<Arc<Thread>, LoadError> {
    let known = match kept.take() {
        Some(thread) => continued(journal, thread, floor).await?,
        None => None,
    };
    let thread = if let Some(thread) = known {
        thread
    } else {
        let records = journal.read(place, Sequence::NONE, floor).await?;
        Arc::new(fold(Thread::new(place.clone()), &records)?)
    };
    *kept = Some(Arc::clone(&thread));
    Ok(thread)
}

/// The fold with what came since; `None` when the journal is not the one it was folded from.
async fn continued(
    journal: &dyn Journal,
    thread: Arc<Thread>,
    floor: Sequence,
) -> Result<Option<Arc<Thread>>, LoadError> {
    if thread.head.sequence == Sequence::NONE {
        return Ok(None);
    }
    let records = journal.read(&thread.place, thread.head.sequence, floor).await?;
    let same = records.first().is_some_and(|first| {
        first.sequence == thread.head.sequence
            && Envelope::nonce_of(&first.payload) == thread.head.nonce
    });
    if !same {
        tracing::warn!(thread = %thread.place, "the journal changed under the fold; folding anew");
        return Ok(None);
    }
    if records.len() == 1 {
        return Ok(Some(thread));
    }
    Ok(Some(Arc::new(fold(Arc::unwrap_or_clone(thread), &records)?)))
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

//! A thread's fold, kept between deliveries and brought up to a floor.
//!
//! A read starts at the last record folded and compares its nonce: sequence numbers of a lost tail
//! are used again, so a fold that does not meet its own last record knows more than the journal,
//! or something else. Where the bus can tell that nothing was lost since, that is not looked for again.
//! Where this process has no fold, it goes on from the snapshot that some planner
//! kept, by the same rule; without one it folds from the first record. What was known beyond the
//! journal is left in [`Kept::lost`], for whoever decides next to restore.

use std::collections::BTreeMap;
use std::sync::Arc;

use planner_core::Thread;
use planner_core::restore::{Loss, dated, loss, says_the_same};
use ports::BusError;
use ports::artifacts::Artifacts;
use ports::journal::{Journal, Stored};
use ports::working_memory::WorkingMemory;
use proto::envelope::{DecodeError, Envelope};
use proto::fact::{Checkpoint, Fact, Restored, Standing};
use proto::ids::{Sequence, ThreadRef};
use proto::observation::ArtifactRef;
use proto::record::{Placed, Record};
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
    /// What was known beyond the journal, until it is restored or the chain has gone on.
    pub(crate) lost: Option<Lost>,
    /// As long as the bus names this number the journal has what the fold was made from.
    unbroken: Option<u64>,
}

/// What was known beyond a journal that has lost its tail.
#[derive(Clone, Debug)]
pub(crate) struct Lost {
    pub(crate) known: Arc<Thread>,
    pub(crate) loss: Loss,
    /// Where the thread stands once it is restored.
    pub(crate) standing: Standing,
    /// The end of the chain that the loss was judged by.
    pub(crate) chain: Sequence,
}

impl Kept {
    /// What a handling has of its thread.
    pub(crate) fn of(thread: Arc<Thread>) -> Self {
        Self { thread: Some(thread), unsaved: 0, lost: None, unbroken: None }
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

    /// Threads that this process has something of.
    pub(crate) async fn folded(&self) -> Vec<ThreadRef> {
        self.slots.lock().await.keys().cloned().collect()
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
    pub(crate) artifacts: &'a dyn Artifacts,
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
        // Named before anything is read: what is read afterwards is there under this name at least.
        let unbroken = self.journal.unbroken();
        let is_whole = unbroken.is_some() && kept.unbroken.take() == unbroken;
        let mut ahead = None;
        if let Some(thread) = kept.thread.take() {
            match self.continued(thread, kept, floor, is_whole).await? {
                Continued::To(thread) => {
                    kept.unbroken = unbroken;
                    return Ok(self.known(Source::Memory, kept, thread));
                }
                Continued::Changed(thread) => ahead = Some(thread),
                Continued::Rebased => {}
            }
        }
        let (source, thread) = self.anew(place, kept, floor, &mut ahead).await?;
        if let Some(known) = ahead {
            kept.lost = self.lost(known, &thread).await?;
        }
        kept.unbroken = unbroken;
        Ok(self.known(source, kept, thread))
    }

    /// The fold without what this process had of it.
    async fn anew(
        self,
        place: &ThreadRef,
        kept: &mut Kept,
        floor: Sequence,
        ahead: &mut Option<Arc<Thread>>,
    ) -> Result<(Source, Arc<Thread>), LoadError> {
        if let Some(thread) = self.snapshot(place).await? {
            kept.unsaved = 0;
            match self.continued(Arc::new(thread), kept, floor, false).await? {
                Continued::To(thread) => return Ok((Source::Snapshot, thread)),
                Continued::Changed(thread) => further(ahead, thread),
                Continued::Rebased => {}
            }
        }
        let reach = ahead.as_ref().map_or(floor, |known| floor.max(known.head.sequence));
        let records = self.read(place, Sequence::NONE, reach).await?;
        kept.unsaved = records.len();
        Ok((Source::Journal, Arc::new(self.whole(place, &records).await?)))
    }

    /// The fold of all records: from the newest state that stands in the place of some.
    async fn whole(self, place: &ThreadRef, records: &[Stored]) -> Result<Thread, LoadError> {
        let folded = fold(Thread::new(place.clone()), records)?;
        let Some(base) = folded.base else { return Ok(folded.thread) };
        let Some(state) = self.state(place, base.state()).await? else { return Ok(folded.thread) };
        let state = match &base {
            Base::Restored(restored) => {
                dated(state, restored.after, &restored.again, &restored.doubts)
            }
            Base::Checkpoint(_) => state,
        };
        Ok(fold(state, records)?.thread)
    }

    /// A kept state; without it the records have to do, from where they begin.
    async fn state(
        self,
        place: &ThreadRef,
        kept: &ArtifactRef,
    ) -> Result<Option<Thread>, LoadError> {
        let Some(bytes) = self.artifacts.get(place, &kept.id).await? else {
            tracing::error!(%place, state = %kept.id, "the kept state of the thread is gone");
            return Ok(None);
        };
        match SavedThread::decode(&bytes) {
            Ok(saved) => Ok(Some(Thread::from(saved))),
            Err(error @ DecodeError::TooNew { .. }) => Err(LoadError::TooNew(error)),
            Err(error @ DecodeError::Malformed(_)) => {
                tracing::error!(%place, %error, "the kept state of the thread is broken");
                Ok(None)
            }
        }
    }

    /// What `known` says beyond the journal that `thread` was folded from, if it says anything.
    async fn lost(self, known: Arc<Thread>, thread: &Thread) -> Result<Option<Lost>, LoadError> {
        let place = &thread.place;
        let Some(loss) = loss(&known, thread) else {
            tracing::warn!(%place, "the journal has gone on without what was known of it");
            return Ok(None);
        };
        let back = dated(Thread::clone(&known), loss.after, &loss.again, &loss.doubts);
        let records = self.read(place, loss.after.next(), thread.head.sequence).await?;
        let there = fold(back, &records)?.thread;
        if says_the_same(&there, thread) {
            return Ok(None);
        }
        let (after, known_to) = (loss.after, known.head.sequence);
        tracing::warn!(%place, %after, %known_to, "the journal has lost its tail");
        let (standing, chain) = (there.standing(), thread.plan_last);
        Ok(Some(Lost { known, loss, standing, chain }))
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

    /// The fold with what came since. Whether the journal is the one that it was folded from is
    /// asked of the leader, unless it is known to be whole; without a floor it is asked all the same.
    async fn continued(
        self,
        thread: Arc<Thread>,
        kept: &mut Kept,
        floor: Sequence,
        is_whole: bool,
    ) -> Result<Continued, LoadError> {
        let head = thread.head.sequence;
        if head == Sequence::NONE {
            return Ok(Continued::Rebased);
        }
        let is_whole = is_whole && floor > Sequence::NONE;
        if is_whole && floor <= head {
            return Ok(Continued::To(thread));
        }
        let mut came = Vec::new();
        if is_whole {
            came = self.read(&thread.place, head.next(), floor).await?;
        }
        // A floor that is not there was purged, or the journal is not what it was.
        if came.is_empty() {
            came = self.read(&thread.place, head, floor.max(head)).await?;
            if !came.first().is_some_and(|first| is_head(&thread, first)) {
                tracing::warn!(thread = %thread.place, %head, "the journal changed under the fold");
                return Ok(Continued::Changed(thread));
            }
            came.remove(0);
        }
        if came.is_empty() {
            return Ok(Continued::To(thread));
        }
        kept.unsaved = kept.unsaved.saturating_add(came.len());
        let folded = fold(Arc::unwrap_or_clone(thread), &came)?;
        Ok(match folded.base {
            Some(Base::Restored(_)) => Continued::Rebased,
            Some(Base::Checkpoint(_)) | None => Continued::To(Arc::new(folded.thread)),
        })
    }
}

/// What became of a fold.
enum Continued {
    /// It contains the floor.
    To(Arc<Thread>),
    /// The journal does not have its last record any more.
    Changed(Arc<Thread>),
    /// A state was put in the place of records, or there was nothing to go on from.
    Rebased,
}

struct Folded {
    thread: Thread,
    /// The newest state that stands in the place of records: the fold lacks it.
    base: Option<Base>,
}

/// Of two folds that the journal has fallen behind, the one that knows more.
fn further(ahead: &mut Option<Arc<Thread>>, thread: Arc<Thread>) {
    if ahead.as_ref().is_none_or(|known| known.head.sequence < thread.head.sequence) {
        *ahead = Some(thread);
    }
}

/// Whether this is the record that the fold ends with.
fn is_head(thread: &Thread, record: &Stored) -> bool {
    record.sequence == thread.head.sequence
        && Envelope::nonce_of(&record.payload) == thread.head.nonce
}

fn fold(mut thread: Thread, records: &[Stored]) -> Result<Folded, LoadError> {
    let mut base = None;
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
                base = brings(&thread, &placed).or(base);
                thread.apply(leaf, &placed);
            }
            Err(error @ DecodeError::TooNew { .. }) => return Err(LoadError::TooNew(error)),
            Err(DecodeError::Malformed(why)) => {
                thread.apply_poison(leaf, stored.sequence, stored.at, why);
            }
        }
    }
    Ok(Folded { thread, base })
}

/// A state in the place of records that are not there.
enum Base {
    /// They were lost.
    Restored(Restored),
    /// They were purged.
    Checkpoint(Checkpoint),
}

impl Base {
    fn state(&self) -> &ArtifactRef {
        match self {
            Self::Restored(restored) => &restored.state,
            Self::Checkpoint(checkpoint) => &checkpoint.state,
        }
    }
}

/// The state that this record brings, if the fold so far lacks what it stands for: always where a
/// tail was lost, and at the first record of the chain where older ones were purged.
fn brings(thread: &Thread, placed: &Placed) -> Option<Base> {
    let Record::Fact(fact) = &placed.record else { return None };
    if placed.sequence <= thread.head.sequence || thread.is_void(placed) {
        return None;
    }
    match fact {
        Fact::Restored(restored) => Some(Base::Restored(restored.clone())),
        Fact::Checkpoint(checkpoint) if thread.plan_last == Sequence::NONE => {
            Some(Base::Checkpoint(checkpoint.clone()))
        }
        Fact::Checkpoint(_)
        | Fact::TurnStarted(_)
        | Fact::TurnCompleted(_)
        | Fact::TurnSealed(_)
        | Fact::CallClosed { .. }
        | Fact::ApprovalAsked(_)
        | Fact::RunFinished(_)
        | Fact::Parked { .. } => None,
    }
}

//! A fold that goes on from what was kept of it, held against the fold from the first record.

use planner_core::Thread;
use ports::journal::Stored;
use proto::envelope::DecodeError;
use proto::ids::ThreadRef;
use proto::saved::SavedThread;

use crate::shared::Violation;

/// What a thread's journal shows when its fold is kept after `cut` records and taken up again.
pub fn judge(place: &ThreadRef, records: &[Stored], cut: usize) -> Option<Violation> {
    let (first, rest) = records.split_at(cut.min(records.len()));
    let before = fold(Thread::new(place.clone()), first);
    let kept = SavedThread::from(&before).encode();
    let resumed = match SavedThread::decode(&kept) {
        Ok(saved) => fold(Thread::from(saved), rest),
        Err(error) => return Some(Violation::new(RULE, format!("{place} at {cut}: {error}"))),
    };
    let whole = fold(before, rest);
    let why = || format!("{place} at {cut}: it was {whole:?}, it came back as {resumed:?}");
    (whole != resumed).then(|| Violation::new(RULE, why()))
}

const RULE: &str = "a_kept_fold_goes_on";

/// A thread that this version may not act on is folded no further.
fn fold(mut thread: Thread, records: &[Stored]) -> Thread {
    for stored in records {
        let leaf = &stored.subject.leaf;
        match stored.placed() {
            Ok(placed) => thread.apply(leaf, &placed),
            Err(DecodeError::TooNew { .. }) => return thread,
            Err(DecodeError::Malformed(why)) => {
                thread.apply_poison(leaf, stored.sequence, stored.at, why);
            }
        }
    }
    thread
}

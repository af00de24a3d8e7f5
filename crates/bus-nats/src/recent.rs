//! Where this process has just written, and how far it has read: a read that passes there can ask for all records at once
//! instead of for one after another.

#![expect(
    clippy::disallowed_types,
    reason = "held for a look or a change of the table, never over an await"
)]

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use proto::ids::{Sequence, ThreadRef};

/// Records known of one thread.
const EACH: usize = 16;
/// Threads; beyond it all are forgotten, which only costs requests.
const THREADS: usize = 8192;

/// What is known of one thread.
#[derive(Debug, Default)]
struct Places {
    written: VecDeque<Sequence>,
    /// The last record that was read.
    read: Sequence,
}

/// The newest appends and reads of this process.
#[derive(Debug, Default)]
pub(crate) struct Recent(Mutex<BTreeMap<ThreadRef, Places>>);

impl Recent {
    /// A record was written.
    pub(crate) fn note(&self, thread: &ThreadRef, sequence: Sequence) {
        let mut threads = self.threads();
        if threads.len() >= THREADS && !threads.contains_key(thread) {
            threads.clear();
        }
        let known = &mut threads.entry(thread.clone()).or_default().written;
        if known.len() == EACH {
            known.pop_front();
        }
        known.push_back(sequence);
    }

    /// A thread was read up to this record.
    pub(crate) fn note_read(&self, thread: &ThreadRef, sequence: Sequence) {
        let mut threads = self.threads();
        if threads.len() >= THREADS && !threads.contains_key(thread) {
            threads.clear();
        }
        threads.entry(thread.clone()).or_default().read = sequence;
    }

    /// Records that are known from `from` on and before `floor`, in order; what lies before is
    /// forgotten.
    pub(crate) fn between(
        &self,
        thread: &ThreadRef,
        from: Sequence,
        floor: Sequence,
    ) -> Vec<Sequence> {
        let mut threads = self.threads();
        let Some(known) = threads.get_mut(thread) else { return Vec::new() };
        known.written.retain(|sequence| *sequence >= from);
        let places = known.written.iter().copied().chain([known.read]);
        let between: BTreeSet<Sequence> =
            places.filter(|place| *place >= from && *place < floor).collect();
        if known.written.is_empty() && known.read < from {
            threads.remove(thread);
        }
        between.into_iter().filter(|place| *place > Sequence::NONE).collect()
    }

    fn threads(&self) -> MutexGuard<'_, BTreeMap<ThreadRef, Places>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use proto::ids::{Partition, TenantId, ThreadId};

    use super::*;

    fn thread(number: u128) -> ThreadRef {
        ThreadRef {
            partition: Partition(0),
            tenant: TenantId::new("acme").unwrap(),
            thread: ThreadId::from_parts(1, number),
        }
    }

    #[test]
    fn what_lies_between_is_told_and_what_lies_before_is_forgotten() {
        let recent = Recent::default();
        for sequence in [7, 4, 9] {
            recent.note(&thread(1), Sequence(sequence));
        }
        recent.note(&thread(2), Sequence(8));
        let one = |from, floor| recent.between(&thread(1), Sequence(from), Sequence(floor));
        assert_eq!(one(3, 9), [Sequence(4), Sequence(7)]);
        assert_eq!(one(4, 20), [Sequence(4), Sequence(7), Sequence(9)]);
        assert_eq!(one(5, 9), [Sequence(7)]);
        assert_eq!(one(10, 20), []);
        assert_eq!(one(0, 20), []);
    }

    #[test]
    fn a_record_that_was_read_is_known_too() {
        let recent = Recent::default();
        recent.note(&thread(1), Sequence(7));
        recent.note_read(&thread(1), Sequence(3));
        recent.note_read(&thread(1), Sequence(5));
        let one = |from, floor| recent.between(&thread(1), Sequence(from), Sequence(floor));
        assert_eq!(one(3, 9), [Sequence(5), Sequence(7)]);
        assert_eq!(one(6, 9), [Sequence(7)]);
        assert_eq!(one(8, 9), []);
    }

    #[test]
    fn it_is_bounded() {
        let recent = Recent::default();
        for sequence in 1..100 {
            recent.note(&thread(1), Sequence(sequence));
        }
        assert_eq!(recent.between(&thread(1), Sequence(0), Sequence(200)).len(), EACH);
        for number in 0..=THREADS {
            recent.note(&thread(u128::try_from(number).unwrap()), Sequence(1));
        }
        assert!(recent.threads().len() <= THREADS);
    }
}

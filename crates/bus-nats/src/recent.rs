//! Where this process has just written: a read that passes there can ask for all records at once
//! instead of for one after another.

#![expect(
    clippy::disallowed_types,
    reason = "held for a look or a change of the table, never over an await"
)]

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use proto::ids::{Sequence, ThreadRef};

/// Records known of one thread.
const EACH: usize = 16;
/// Threads; beyond it all are forgotten, which only costs requests.
const THREADS: usize = 8192;

/// The newest appends of this process.
#[derive(Debug, Default)]
pub(crate) struct Recent(Mutex<BTreeMap<ThreadRef, VecDeque<Sequence>>>);

impl Recent {
    /// A record was written.
    pub(crate) fn note(&self, thread: &ThreadRef, sequence: Sequence) {
        let mut threads = self.threads();
        if threads.len() >= THREADS && !threads.contains_key(thread) {
            threads.clear();
        }
        let known = threads.entry(thread.clone()).or_default();
        if known.len() == EACH {
            known.pop_front();
        }
        known.push_back(sequence);
    }

    /// What was written behind `from` and before `floor`, in order; what lies before is forgotten.
    pub(crate) fn between(
        &self,
        thread: &ThreadRef,
        from: Sequence,
        floor: Sequence,
    ) -> Vec<Sequence> {
        let mut threads = self.threads();
        let Some(known) = threads.get_mut(thread) else { return Vec::new() };
        known.retain(|sequence| *sequence > from);
        let mut between: Vec<Sequence> =
            known.iter().copied().filter(|sequence| *sequence < floor).collect();
        if known.is_empty() {
            threads.remove(thread);
        }
        between.sort_unstable();
        between
    }

    fn threads(&self) -> MutexGuard<'_, BTreeMap<ThreadRef, VecDeque<Sequence>>> {
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
        assert_eq!(one(4, 20), [Sequence(7), Sequence(9)]);
        assert_eq!(one(9, 20), []);
        assert_eq!(one(0, 20), []);
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

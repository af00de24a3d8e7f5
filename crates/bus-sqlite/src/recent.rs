//! The newest records of the threads at work, in memory. This process is the only one that writes
//! the file, so what it has committed since a thread's first remembered record is all there is:
//! a read from there on needs no look at the file. Whatever is forgotten is read from the file.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ports::journal::Stored;
use proto::ids::{Sequence, ThreadRef, ToolCallId};

use crate::guarded::Guarded;

/// Bytes of payload that are remembered.
const ROOM: usize = 8 * 1024 * 1024;
/// Threads that are remembered.
const THREADS: usize = 4096;
/// Bytes of payload of one thread.
const THREAD_ROOM: usize = 512 * 1024;
/// Around a record.
const FRAME: usize = 200;

/// Who was put into a table of working memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mark {
    /// A result was kept.
    Done,
    /// A call was cancelled.
    Cancelled,
}

/// A record that was committed.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) stored: Stored,
    /// Whether the thread began with it and nothing in the file is older.
    pub(crate) first: bool,
}

#[derive(Debug)]
struct Entry {
    /// Every record from this sequence on is here.
    from: Sequence,
    records: VecDeque<Stored>,
    bytes: usize,
    /// All marks since the thread began; absent when it began before.
    marks: Option<BTreeSet<(Mark, ToolCallId)>>,
    touched: u64,
}

#[derive(Debug, Default)]
struct Known {
    threads: BTreeMap<ThreadRef, Entry>,
    bytes: usize,
    clock: u64,
}

/// What is remembered.
#[derive(Debug, Default)]
pub(crate) struct Recent(Guarded<Known>);

impl Recent {
    /// Remembers what a commit wrote, and forgets what it removed.
    pub(crate) fn committed(&self, written: Vec<Written>, purged: &[ThreadRef]) {
        if written.is_empty() && purged.is_empty() {
            return;
        }
        self.0.with(|known| {
            for thread in purged {
                known.forget(thread);
            }
            for written in written {
                known.add(written);
            }
            known.make_room();
        });
    }

    /// The records of a thread from `from` on, if all of them are remembered.
    pub(crate) fn read(&self, thread: &ThreadRef, from: Sequence) -> Option<Vec<Stored>> {
        self.0.with(|known| {
            known.clock = known.clock.saturating_add(1);
            let clock = known.clock;
            let entry = known.threads.get_mut(thread).filter(|entry| entry.from <= from)?;
            entry.touched = clock;
            let newer = entry.records.iter().rev().take_while(|stored| stored.sequence >= from);
            let mut records: Vec<Stored> = newer.cloned().collect();
            records.reverse();
            Some(records)
        })
    }

    /// Says that a mark is about to be written: from now on the file has to be asked.
    pub(crate) fn mark(&self, thread: &ThreadRef, mark: Mark, call: &ToolCallId) {
        self.0.with(|known| {
            if let Some(entry) = known.threads.get_mut(thread)
                && let Some(marks) = &mut entry.marks
            {
                marks.insert((mark, call.clone()));
            }
        });
    }

    /// Whether the file certainly has no such mark.
    pub(crate) fn is_unmarked(&self, thread: &ThreadRef, mark: Mark, call: &ToolCallId) -> bool {
        self.0.with(|known| {
            let marks = known.threads.get(thread).and_then(|entry| entry.marks.as_ref());
            marks.is_some_and(|marks| !marks.contains(&(mark, call.clone())))
        })
    }
}

impl Known {
    fn add(&mut self, Written { stored, first }: Written) {
        self.clock = self.clock.saturating_add(1);
        let clock = self.clock;
        let entry = self.threads.entry(stored.subject.thread.clone()).or_insert_with(|| Entry {
            from: if first { Sequence::NONE } else { stored.sequence },
            records: VecDeque::new(),
            bytes: 0,
            marks: first.then(BTreeSet::new),
            touched: clock,
        });
        let bytes = size(&stored);
        entry.touched = clock;
        entry.bytes = entry.bytes.saturating_add(bytes);
        entry.records.push_back(stored);
        self.bytes = self.bytes.saturating_add(bytes);
        self.bytes = self.bytes.saturating_sub(entry.trim());
    }

    fn forget(&mut self, thread: &ThreadRef) {
        if let Some(entry) = self.threads.remove(thread) {
            self.bytes = self.bytes.saturating_sub(entry.bytes);
        }
    }

    /// Forgets the threads that were left alone for longest, half of all at once.
    fn make_room(&mut self) {
        if self.bytes <= ROOM && self.threads.len() <= THREADS {
            return;
        }
        let mut ages: Vec<u64> = self.threads.values().map(|entry| entry.touched).collect();
        ages.sort_unstable();
        let Some(middle) = ages.get(ages.len() / 2).copied() else { return };
        self.threads.retain(|_, entry| entry.touched > middle);
        self.bytes = self.threads.values().map(|entry| entry.bytes).sum();
    }
}

impl Entry {
    /// Forgets the oldest records of a long thread; answers with their bytes.
    fn trim(&mut self) -> usize {
        let before = self.bytes;
        while self.bytes > THREAD_ROOM && self.records.len() > 1 {
            let Some(oldest) = self.records.pop_front() else { break };
            self.bytes = self.bytes.saturating_sub(size(&oldest));
            self.from = self.records.front().map_or(self.from, |next| next.sequence);
        }
        before.saturating_sub(self.bytes)
    }
}

fn size(stored: &Stored) -> usize {
    stored.payload.len().saturating_add(FRAME)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proto::subject::{Leaf, Subject};
    use proto::time::Timestamp;

    use super::*;
    use crate::rows::thread_of;

    fn thread(number: usize) -> ThreadRef {
        thread_of(&format!("0/acme/{number:026}")).unwrap()
    }

    fn written(number: usize, sequence: u64, bytes: usize, first: bool) -> Written {
        let subject = Subject::new(thread(number), Leaf::Fact);
        let payload = Bytes::from(vec![b'x'; bytes]);
        let stored = Stored { sequence: Sequence(sequence), subject, at: Timestamp(1), payload };
        Written { stored, first }
    }

    fn read(recent: &Recent, number: usize, from: u64) -> Option<Vec<u64>> {
        let records = recent.read(&thread(number), Sequence(from))?;
        Some(records.iter().map(|stored| stored.sequence.0).collect())
    }

    fn call() -> ToolCallId {
        ToolCallId::new("abc123xyz").unwrap()
    }

    #[test]
    fn a_thread_that_began_here_is_known_whole_and_another_from_its_first_record_here() {
        let recent = Recent::default();
        let all = vec![written(1, 5, 9, true), written(2, 6, 9, false), written(1, 8, 9, false)];
        recent.committed(all, &[]);
        assert_eq!(read(&recent, 1, 0), Some(vec![5, 8]));
        assert_eq!(read(&recent, 1, 8), Some(vec![8]));
        assert_eq!(read(&recent, 1, 9), Some(vec![]));
        assert_eq!(read(&recent, 2, 0), None);
        assert_eq!(read(&recent, 2, 6), Some(vec![6]));
        assert_eq!(read(&recent, 3, 0), None);
    }

    #[test]
    fn what_was_purged_is_read_from_the_file() {
        let recent = Recent::default();
        recent.committed(vec![written(1, 5, 9, true)], &[]);
        recent.committed(Vec::new(), &[thread(1)]);
        assert_eq!(read(&recent, 1, 5), None);
        assert_eq!(recent.0.with(|known| known.bytes), 0);
    }

    #[test]
    fn a_long_thread_is_known_from_a_later_record_on() {
        let recent = Recent::default();
        let parts = (1..=4).map(|n| written(1, n, THREAD_ROOM / 3, n == 1)).collect();
        recent.committed(parts, &[]);
        assert_eq!(read(&recent, 1, 0), None);
        assert_eq!(read(&recent, 1, 3), Some(vec![3, 4]));
    }

    #[test]
    fn room_is_made_by_forgetting_what_was_left_alone() {
        let recent = Recent::default();
        for number in 0..=THREADS {
            let sequence = u64::try_from(number + 1).unwrap();
            recent.committed(vec![written(number, sequence, 9, true)], &[]);
            assert_eq!(read(&recent, 0, 0), Some(vec![1]), "touched each time");
        }
        assert_eq!(read(&recent, 1, 0), None);
        assert!(recent.0.with(|known| known.threads.len()) <= THREADS);
    }

    #[test]
    fn only_a_thread_that_began_here_is_known_to_have_no_mark() {
        let recent = Recent::default();
        recent.committed(vec![written(1, 5, 9, true), written(2, 6, 9, false)], &[]);
        assert!(recent.is_unmarked(&thread(1), Mark::Done, &call()));
        assert!(!recent.is_unmarked(&thread(2), Mark::Done, &call()));
        recent.mark(&thread(1), Mark::Done, &call());
        assert!(!recent.is_unmarked(&thread(1), Mark::Done, &call()));
        assert!(recent.is_unmarked(&thread(1), Mark::Cancelled, &call()));
    }
}

//! How long a run has taken, by its journal. The time in which nobody could have acted is not its
//! own: of a silence counts at most what lies before the next deadline, so that a process that was
//! down for a day costs a run minutes; and to wait for a person's approval costs nothing.

use std::time::Duration;

use proto::time::Timestamp;

use crate::calls::deadline;
use crate::thread::Thread;

/// What counts of a silence in which nothing was due.
const UNWATCHED: Duration = Duration::from_mins(1);

impl Thread {
    /// How long the active run has taken by `now`.
    pub fn taken(&self, now: Timestamp) -> Duration {
        let taken = self.run.as_ref().map_or(Duration::ZERO, |run| run.taken);
        taken.saturating_add(self.counted(now))
    }

    /// What counts of the time from the last record to `now`.
    pub(crate) fn counted(&self, now: Timestamp) -> Duration {
        now.since(self.head.at).min(self.longest_silence())
    }

    fn longest_silence(&self) -> Duration {
        let Some(run) = &self.run else { return Duration::ZERO };
        let turn = run.open.as_ref().map(|open| open.started.deadline);
        let due = turn.into_iter().chain(self.call_deadlines()).min();
        match due {
            Some(due) => due.since(self.head.at).max(UNWATCHED),
            None if self.open_calls().next().is_some() => Duration::ZERO,
            None => UNWATCHED,
        }
    }

    /// When dispatched calls are due; those that wait for a person are not dispatched.
    fn call_deadlines(&self) -> impl Iterator<Item = Timestamp> {
        let dispatched = self.open_calls().filter(|call| call.dispatched.is_some());
        dispatched.filter_map(|call| deadline(self, call))
    }
}

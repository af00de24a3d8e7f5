//! Model requests that this process has open: who asks is told, who stops is heard.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ports::live::Holds;
use proto::ids::{Sequence, ThreadRef};
use tokio::sync::{Notify, watch};

#[derive(Clone, Debug)]
struct Turn {
    started: Sequence,
    nudge: Arc<Notify>,
}

/// Open model requests by thread.
#[derive(Clone, Debug)]
pub(crate) struct Running {
    turns: Arc<watch::Sender<BTreeMap<ThreadRef, Turn>>>,
    /// Threads of which a turn begins here, with how many hands are at it: its record may be in the
    /// journal before this process knows where.
    beginning: Arc<watch::Sender<BTreeMap<ThreadRef, u32>>>,
}

/// Keeps a thread among those of which a turn begins here.
#[derive(Debug)]
pub(crate) struct Beginning {
    running: Running,
    place: ThreadRef,
}

/// Keeps one request in the list.
#[derive(Debug)]
pub(crate) struct RunningGuard {
    running: Running,
    place: ThreadRef,
    nudge: Arc<Notify>,
}

impl Running {
    pub(crate) fn new() -> Self {
        Self { turns: Arc::default(), beginning: Arc::default() }
    }

    /// Says that a turn begins here, from before its record is appended until it is entered: whoever
    /// finds the record meanwhile and asks must not take it over.
    pub(crate) fn begin(&self, place: ThreadRef) -> Beginning {
        self.beginning.send_modify(|threads| {
            let hands = threads.entry(place.clone()).or_default();
            *hands = hands.saturating_add(1);
        });
        Beginning { running: self.clone(), place }
    }

    pub(crate) fn enter(&self, place: ThreadRef, started: Sequence) -> RunningGuard {
        let nudge = Arc::new(Notify::new());
        let turn = Turn { started, nudge: Arc::clone(&nudge) };
        self.turns.send_modify(|turns| {
            turns.insert(place.clone(), turn);
        });
        RunningGuard { running: self.clone(), place, nudge }
    }

    pub(crate) fn is_running(&self, place: &ThreadRef, started: Sequence) -> bool {
        self.turns.borrow().get(place).is_some_and(|turn| turn.started == started)
    }

    /// Makes the request of a thread look at the journal.
    pub(crate) fn nudge(&self, place: &ThreadRef) {
        if let Some(turn) = self.turns.borrow().get(place) {
            turn.nudge.notify_one();
        }
    }

    /// Waits until the thread has no open request here, at most for `patience`.
    pub(crate) async fn until_idle(&self, place: &ThreadRef, patience: Duration) {
        let mut turns = self.turns.subscribe();
        let idle = turns.wait_for(|turns| !turns.contains_key(place));
        if tokio::time::timeout(patience, idle).await.is_err() {
            tracing::debug!(%place, "the open turn did not stop in time");
        }
    }

    /// The answer to other planners' questions.
    pub(crate) fn holds(&self) -> Holds {
        let running = self.clone();
        Arc::new(move |question| {
            running.is_running(&question.thread, question.started)
                || running.beginning.borrow().contains_key(&question.thread)
        })
    }
}

impl RunningGuard {
    /// Waits until somebody wants the request to look at the journal.
    pub(crate) async fn nudged(&self) {
        self.nudge.notified().await;
    }
}

impl Drop for Beginning {
    fn drop(&mut self) {
        self.running.beginning.send_modify(|threads| {
            let left = threads.get(&self.place).map_or(0, |hands| hands.saturating_sub(1));
            if left == 0 {
                threads.remove(&self.place);
            } else {
                threads.insert(self.place.clone(), left);
            }
        });
    }
}

impl Drop for RunningGuard {
    fn drop(&mut self) {
        self.running.turns.send_modify(|turns| {
            // Once a turn is recorded, its calls may be answered and the next turn begun by another
            // handling before this one is gone. That turn's place in the list is not ours to take.
            let is_ours =
                turns.get(&self.place).is_some_and(|turn| Arc::ptr_eq(&turn.nudge, &self.nudge));
            if is_ours {
                turns.remove(&self.place);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use proto::ids::{Partition, TenantId, ThreadId};

    use proto::live::HeldQuestion;

    use super::*;

    fn place() -> ThreadRef {
        ThreadRef {
            partition: Partition(0),
            tenant: TenantId::new("acme").unwrap(),
            thread: ThreadId::from_parts(1, 1),
        }
    }

    #[test]
    fn a_turn_is_held_from_before_its_record_until_it_ends() {
        let running = Running::new();
        let holds = running.holds();
        let asked = HeldQuestion { thread: place(), started: Sequence(2) };
        assert!(!holds(&asked));
        let (one, two) = (running.begin(place()), running.begin(place()));
        assert!(holds(&asked));
        drop(one);
        assert!(holds(&asked), "another hand is at it");
        let turn = running.enter(place(), Sequence(2));
        drop(two);
        assert!(holds(&asked));
        drop(turn);
        assert!(!holds(&asked));
    }

    #[test]
    fn the_end_of_a_turn_leaves_the_next_one_in_the_list() {
        let (place, running) = (place(), Running::new());
        let first = running.enter(place.clone(), Sequence(2));
        let second = running.enter(place.clone(), Sequence(7));
        drop(first);
        assert!(running.is_running(&place, Sequence(7)));
        drop(second);
        assert!(!running.is_running(&place, Sequence(7)));
    }
}

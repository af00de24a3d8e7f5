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
        Self { turns: Arc::new(watch::Sender::new(BTreeMap::new())) }
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
        Arc::new(move |question| running.is_running(&question.thread, question.started))
    }
}

impl RunningGuard {
    /// Waits until somebody wants the request to look at the journal.
    pub(crate) async fn nudged(&self) {
        self.nudge.notified().await;
    }
}

impl Drop for RunningGuard {
    fn drop(&mut self) {
        self.running.turns.send_modify(|turns| {
            turns.remove(&self.place);
        });
    }
}

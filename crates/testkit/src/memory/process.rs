//! Whether a process can act at all.

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::lock::Lock;

#[derive(Clone, Copy, Debug, Default)]
struct Condition {
    dead: bool,
    paused_until: Option<Instant>,
    cut_off_until: Option<Instant>,
}

/// One process, as the world sees it.
#[derive(Debug, Default)]
pub(super) struct Process {
    condition: Lock<Condition>,
    changed: Notify,
}

impl Process {
    pub(super) fn kill(&self) {
        self.condition.lock().dead = true;
        self.changed.notify_waiters();
    }

    pub(super) fn pause_until(&self, until: Instant) {
        self.condition.lock().paused_until = Some(until);
    }

    pub(super) fn cut_off_until(&self, until: Instant) {
        self.condition.lock().cut_off_until = Some(until);
        self.changed.notify_waiters();
    }

    pub(super) fn is_in_touch(&self) -> bool {
        let condition = *self.condition.lock();
        let now = Instant::now();
        let past = |until: Option<Instant>| until.is_none_or(|until| until <= now);
        !condition.dead && past(condition.paused_until) && past(condition.cut_off_until)
    }

    pub(super) fn is_dead(&self) -> bool {
        self.condition.lock().dead
    }

    pub(super) fn is_cut_off(&self) -> bool {
        self.condition.lock().cut_off_until.is_some_and(|until| until > Instant::now())
    }

    /// Returns when the process runs; never, when it is dead.
    pub(super) async fn running(&self) {
        loop {
            let condition = *self.condition.lock();
            match condition.paused_until {
                _ if condition.dead => std::future::pending::<()>().await,
                Some(until) if until > Instant::now() => sleep_until(until).await,
                Some(_) | None => return,
            }
        }
    }

    /// Returns at once; never, when the process is dead.
    pub(super) async fn alive(&self) {
        if self.is_dead() {
            std::future::pending::<()>().await;
        }
    }

    /// Returns when the process dies or is cut off.
    pub(super) async fn out_of_touch(&self) {
        loop {
            let changed = self.changed.notified();
            if self.is_dead() || self.is_cut_off() {
                return;
            }
            changed.await;
        }
    }
}

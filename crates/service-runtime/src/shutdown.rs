//! Stopping in two steps: drain (take nothing new, finish what is held), then abandon.

use tokio_util::sync::CancellationToken;

/// Both steps; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    drain: CancellationToken,
    abandon: CancellationToken,
}

impl Shutdown {
    /// Nothing asked yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// First step: take nothing new.
    pub fn drain(&self) {
        self.drain.cancel();
    }

    /// Second step: drop everything. Implies the first.
    pub fn abandon(&self) {
        self.drain.cancel();
        self.abandon.cancel();
    }

    /// Whether the first step was asked.
    pub fn is_draining(&self) -> bool {
        self.drain.is_cancelled()
    }

    /// Waits for the first step.
    pub async fn draining(&self) {
        self.drain.cancelled().await;
    }

    /// Whether the second step was asked.
    pub fn is_abandoned(&self) -> bool {
        self.abandon.is_cancelled()
    }

    /// Waits for the second step.
    pub async fn abandoned(&self) {
        self.abandon.cancelled().await;
    }
}

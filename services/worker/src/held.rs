//! Deliveries this process holds. Each is held until its guard is
//! dropped, also by a panic.

use std::collections::BTreeSet;
use std::sync::Arc;

use ports::queues::DeliveryToken;
use tokio::sync::watch;

/// Everything held.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    tokens: Arc<watch::Sender<BTreeSet<DeliveryToken>>>,
}

/// Keeps one delivery in the set.
#[derive(Debug)]
pub(crate) struct HeldGuard {
    held: Held,
    token: DeliveryToken,
}

impl Held {
    pub(crate) fn new() -> Self {
        Self { tokens: Arc::new(watch::Sender::new(BTreeSet::new())) }
    }

    pub(crate) fn hold(&self, token: DeliveryToken) -> HeldGuard {
        self.tokens.send_modify(|tokens| {
            tokens.insert(token.clone());
        });
        HeldGuard { held: self.clone(), token }
    }

    /// What has to be kept alive.
    pub(crate) fn all(&self) -> Vec<DeliveryToken> {
        self.tokens.borrow().iter().cloned().collect()
    }
}

impl Drop for HeldGuard {
    fn drop(&mut self) {
        self.held.tokens.send_modify(|tokens| {
            tokens.remove(&self.token);
        });
    }
}

//! Deliveries this process holds. Each is held until its guard is dropped, also by a panic, and
//! kept alive by one paced sweep.

use std::collections::BTreeSet;
use std::sync::Arc;

use ports::queues::{DeliveryToken, Queues};
use tokio::sync::watch;
use tokio::time::sleep;

/// Deliveries in one sign of life.
const AT_ONCE: usize = 256;

/// Everything held. Clones share it.
#[derive(Clone, Debug)]
pub struct Held {
    tokens: Arc<watch::Sender<BTreeSet<DeliveryToken>>>,
}

/// Keeps one delivery among what is held.
#[derive(Debug)]
pub struct HeldGuard {
    held: Held,
    token: DeliveryToken,
}

impl Default for Held {
    fn default() -> Self {
        Self { tokens: Arc::new(watch::Sender::new(BTreeSet::new())) }
    }
}

impl Held {
    /// Holds a delivery until the guard is dropped.
    pub fn hold(&self, token: DeliveryToken) -> HeldGuard {
        self.tokens.send_modify(|tokens| {
            tokens.insert(token.clone());
        });
        HeldGuard { held: self.clone(), token }
    }

    /// What has to be kept alive.
    pub fn all(&self) -> Vec<DeliveryToken> {
        self.tokens.borrow().iter().cloned().collect()
    }

    /// Gives three signs of life within one ack wait, for ever. Run it as a task of its own, so that
    /// no other work can starve it.
    pub async fn keep_alive(self, queues: Arc<dyn Queues>) {
        let pause = queues.ack_wait() / 3;
        loop {
            sleep(pause).await;
            for tokens in self.all().chunks(AT_ONCE) {
                if let Err(error) = queues.progress(tokens).await {
                    tracing::warn!(%error, held = tokens.len(), "held deliveries gave no sign of life");
                }
            }
        }
    }
}

impl HeldGuard {
    /// The delivery.
    pub fn token(&self) -> &DeliveryToken {
        &self.token
    }
}

impl Drop for HeldGuard {
    fn drop(&mut self) {
        self.held.tokens.send_modify(|tokens| {
            tokens.remove(&self.token);
        });
    }
}

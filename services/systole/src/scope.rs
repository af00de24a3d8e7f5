//! Which threads a process carries on with. A command that follows one run leaves all others as they
//! are: nobody watches them, and their model, tools and approvals were chosen by another command.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ports::BusError;
use ports::queues::{Delivery, DeliveryToken, Queue, Queues};
use proto::ids::ThreadId;
use tokio::sync::watch;

/// How soon the work of another thread is looked at again: it may have come into scope.
const LATER: Duration = Duration::from_secs(3);

/// All threads, or these.
#[derive(Clone, Debug)]
pub(crate) struct Scope(watch::Sender<Option<BTreeSet<ThreadId>>>);

impl Scope {
    /// Every thread of the store.
    pub(crate) fn all() -> Self {
        Self(watch::Sender::new(None))
    }

    /// From now on no thread but this one.
    pub(crate) fn only(&self, thread: ThreadId) {
        self.0.send_replace(Some(BTreeSet::from([thread])));
    }

    /// This one too.
    pub(crate) fn add(&self, thread: ThreadId) {
        self.0.send_modify(|scope| {
            if let Some(threads) = scope {
                threads.insert(thread);
            }
        });
    }

    /// Whether a thread is in it.
    pub(crate) fn holds(&self, thread: ThreadId) -> bool {
        self.0.borrow().as_ref().is_none_or(|threads| threads.contains(&thread))
    }
}

/// Queues that hand out the work of threads in scope. The rest is given back: it stays without an
/// ack and comes at once to whoever owns the store next.
pub(crate) struct ScopedQueues {
    inner: Arc<dyn Queues>,
    scope: Scope,
}

impl ScopedQueues {
    pub(crate) fn new(inner: Arc<dyn Queues>, scope: Scope) -> Self {
        Self { inner, scope }
    }
}

#[async_trait]
impl Queues for ScopedQueues {
    fn ack_wait(&self) -> Duration {
        self.inner.ack_wait()
    }

    /// May answer with nothing before `wait` is over, when all that came was another thread's.
    async fn pull(
        &self,
        queue: &Queue,
        max: usize,
        wait: Duration,
    ) -> Result<Vec<Delivery>, BusError> {
        let pulled = self.inner.pull(queue, max, wait).await?;
        let is_ours = |delivery: &Delivery| self.scope.holds(delivery.stored.subject.thread.thread);
        let (ours, others): (Vec<_>, Vec<_>) = pulled.into_iter().partition(is_ours);
        for delivery in others {
            if let Err(error) = self.inner.nak(&delivery.token, LATER).await {
                tracing::debug!(%error, "work of another thread was not given back");
            }
        }
        Ok(ours)
    }

    async fn ack(&self, token: &DeliveryToken) -> Result<(), BusError> {
        self.inner.ack(token).await
    }

    async fn nak(&self, token: &DeliveryToken, delay: Duration) -> Result<(), BusError> {
        self.inner.nak(token, delay).await
    }

    async fn progress(&self, tokens: &[DeliveryToken]) -> Result<(), BusError> {
        self.inner.progress(tokens).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_begins_with_all_and_grows_by_name() {
        let [one, two]: [ThreadId; 2] = [1, 2].map(|n| ThreadId::from_parts(n, 0));
        let scope = Scope::all();
        scope.add(one);
        assert!(scope.holds(two), "all stay all");
        scope.only(one);
        assert!(scope.holds(one) && !scope.holds(two));
        scope.add(two);
        assert!(scope.holds(two));
    }
}

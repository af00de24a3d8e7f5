//! A journal that remembers the first trouble which waiting does not cure, so that a person hears
//! of a full or damaged store instead of watching a run stand still.

use std::sync::Arc;

use async_trait::async_trait;
use ports::BusError;
use ports::journal::{Append, AppendError, Appended, Fence, Journal, Stored};
use proto::ids::{Sequence, TenantId, ThreadRef};
use proto::subject::Subject;
use proto::time::Timestamp;
use tokio::sync::watch;

use crate::scope::Scope;

/// The first trouble, once there is one.
#[derive(Clone, Debug)]
pub(crate) struct Trouble(watch::Sender<Option<BusError>>);

impl Trouble {
    pub(crate) fn none() -> Self {
        Self(watch::Sender::new(None))
    }

    /// Remembers an error that stays.
    pub(crate) fn note(&self, error: &BusError) {
        if is_lasting(error) {
            self.insist(error);
        }
    }

    /// Remembers an error after which nothing goes on.
    pub(crate) fn insist(&self, error: &BusError) {
        self.0.send_if_modified(|first| {
            let is_first = first.is_none();
            if is_first {
                *first = Some(error.clone());
            }
            is_first
        });
    }

    /// The first one.
    pub(crate) fn first(&self) -> Option<BusError> {
        self.0.borrow().clone()
    }
}

fn is_lasting(error: &BusError) -> bool {
    match error {
        BusError::Full(_) | BusError::Corrupt(_) | BusError::Locked(_) => true,
        BusError::Unavailable(_) | BusError::TooLarge { .. } | BusError::Refused(_) => false,
    }
}

/// The journal with an ear on its errors.
pub(crate) struct WatchedJournal {
    inner: Arc<dyn Journal>,
    trouble: Trouble,
    scope: Scope,
}

impl WatchedJournal {
    pub(crate) fn new(inner: Arc<dyn Journal>, trouble: Trouble, scope: Scope) -> Self {
        Self { inner, trouble, scope }
    }

    fn heard<T>(&self, result: Result<T, BusError>) -> Result<T, BusError> {
        result.inspect_err(|error| self.trouble.note(error))
    }

    fn heard_append<T>(&self, result: Result<T, AppendError>) -> Result<T, AppendError> {
        result.inspect_err(|error| match error {
            AppendError::Bus(error) => self.trouble.note(error),
            AppendError::Fenced { .. } | AppendError::NoAnswer(_) => {}
        })
    }
}

#[async_trait]
impl Journal for WatchedJournal {
    async fn append(&self, append: Append) -> Result<Appended, AppendError> {
        self.heard_append(self.inner.append(append).await)
    }

    async fn read(
        &self,
        thread: &ThreadRef,
        from: Sequence,
        floor: Sequence,
    ) -> Result<Vec<Stored>, BusError> {
        self.heard(self.inner.read(thread, from, floor).await)
    }

    async fn last(&self, subject: &Subject) -> Result<Option<Stored>, BusError> {
        self.heard(self.inner.last(subject).await)
    }

    async fn schedule(
        &self,
        thread: &ThreadRef,
        at: Timestamp,
        fence: Fence,
    ) -> Result<(), AppendError> {
        if !self.scope.holds(thread.thread) {
            // Its deadlines wait with it: nobody here would act on a tick.
            return Err(AppendError::Fenced { last: None });
        }
        self.heard_append(self.inner.schedule(thread, at, fence).await)
    }

    async fn scheduled(&self, thread: &ThreadRef) -> Result<Option<Timestamp>, BusError> {
        self.heard(self.inner.scheduled(thread).await)
    }

    async fn purge(&self, thread: &ThreadRef, up_to: Sequence) -> Result<(), BusError> {
        self.heard(self.inner.purge(thread, up_to).await)
    }

    async fn threads(&self, tenant: &TenantId, limit: usize) -> Result<Vec<ThreadRef>, BusError> {
        self.heard(self.inner.threads(tenant, limit).await)
    }

    async fn server_time(&self) -> Result<Timestamp, BusError> {
        self.heard(self.inner.server_time().await)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_trouble_that_stays_is_kept() {
        let trouble = Trouble::none();
        trouble.note(&BusError::Unavailable("busy".to_owned()));
        assert_eq!(trouble.first(), None);
        trouble.note(&BusError::Full("disk".to_owned()));
        trouble.note(&BusError::Corrupt("page 7".to_owned()));
        assert_eq!(trouble.first(), Some(BusError::Full("disk".to_owned())));
    }
}

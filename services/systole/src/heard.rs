//! A journal that tells what it has taken, for a screen that shows all threads.

use std::sync::Arc;

use async_trait::async_trait;
use ports::BusError;
use ports::clock::Clock;
use ports::journal::{Append, AppendError, Appended, Fence, Journal, Stored};
use proto::ids::{Sequence, TenantId, ThreadRef};
use proto::subject::Subject;
use proto::time::Timestamp;
use tokio::sync::mpsc;

/// Records that wait to be shown; beyond it the newest are not shown.
const WAITING: usize = 4096;

/// The journal with a voice.
pub(crate) struct HeardJournal {
    inner: Arc<dyn Journal>,
    clock: Arc<dyn Clock>,
    tell: mpsc::Sender<Stored>,
}

impl HeardJournal {
    pub(crate) fn new(
        inner: Arc<dyn Journal>,
        clock: Arc<dyn Clock>,
    ) -> (Self, mpsc::Receiver<Stored>) {
        let (tell, told) = mpsc::channel(WAITING);
        (Self { inner, clock, tell }, told)
    }
}

#[async_trait]
impl Journal for HeardJournal {
    async fn append(&self, append: Append) -> Result<Appended, AppendError> {
        let (subject, payload) = (append.subject.clone(), append.payload.clone());
        let appended = self.inner.append(append).await?;
        if !appended.duplicate {
            let sequence = appended.sequence;
            let stored = Stored { subject, sequence, at: self.clock.now(), payload };
            if let Err(error) = self.tell.try_send(stored) {
                tracing::debug!(%error, "a record is not shown");
            }
        }
        Ok(appended)
    }

    async fn read(
        &self,
        thread: &ThreadRef,
        from: Sequence,
        floor: Sequence,
    ) -> Result<Vec<Stored>, BusError> {
        self.inner.read(thread, from, floor).await
    }

    async fn last(&self, subject: &Subject) -> Result<Option<Stored>, BusError> {
        self.inner.last(subject).await
    }

    async fn schedule(
        &self,
        thread: &ThreadRef,
        at: Timestamp,
        fence: Fence,
    ) -> Result<(), AppendError> {
        self.inner.schedule(thread, at, fence).await
    }

    async fn scheduled(&self, thread: &ThreadRef) -> Result<Option<Timestamp>, BusError> {
        self.inner.scheduled(thread).await
    }

    async fn purge(&self, thread: &ThreadRef, up_to: Sequence) -> Result<(), BusError> {
        self.inner.purge(thread, up_to).await
    }

    async fn threads(&self, tenant: &TenantId, limit: usize) -> Result<Vec<ThreadRef>, BusError> {
        self.inner.threads(tenant, limit).await
    }

    async fn server_time(&self) -> Result<Timestamp, BusError> {
        self.inner.server_time().await
    }
}

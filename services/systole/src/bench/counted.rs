//! A journal that counts what is asked of it and hears when a run has finished.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use ports::BusError;
use ports::journal::{Append, AppendError, Appended, Fence, Journal, Stored};
use proto::envelope::Envelope;
use proto::fact::{Fact, Outcome, RunFinished};
use proto::ids::{Sequence, TenantId, ThreadRef};
use proto::record::Record;
use proto::subject::{Leaf, Subject};
use proto::time::Timestamp;
use tokio::sync::{Mutex, oneshot};
use tokio::time::Instant;

/// What only the payload of such a fact holds.
const FINISHED: &[u8] = b"run_finished";

/// How often, and how long in all.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    count: AtomicU64,
    nanos: AtomicU64,
}

impl Tally {
    fn add(&self, took: Duration) {
        self.count.fetch_add(1, Ordering::Relaxed);
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    pub(crate) fn count(&self) -> usize {
        usize::try_from(self.count.load(Ordering::Relaxed)).unwrap_or(usize::MAX)
    }

    /// The mean.
    pub(crate) fn mean(&self) -> Duration {
        let (nanos, count) =
            (self.nanos.load(Ordering::Relaxed), self.count.load(Ordering::Relaxed));
        Duration::from_nanos(nanos.checked_div(count).unwrap_or(0))
    }
}

/// The journal with an ear.
pub(crate) struct Counted {
    inner: Arc<dyn Journal>,
    waiting: Mutex<BTreeMap<ThreadRef, oneshot::Sender<Outcome>>>,
    pub(crate) appends: Tally,
    pub(crate) reads: Tally,
    pub(crate) schedules: Tally,
    records: AtomicU64,
}

impl Counted {
    pub(crate) fn new(inner: Arc<dyn Journal>) -> Self {
        Self {
            inner,
            waiting: Mutex::default(),
            appends: Tally::default(),
            reads: Tally::default(),
            schedules: Tally::default(),
            records: AtomicU64::new(0),
        }
    }

    /// Records that reads have answered.
    pub(crate) fn records(&self) -> usize {
        usize::try_from(self.records.load(Ordering::Relaxed)).unwrap_or(usize::MAX)
    }

    /// Tells how the thread's next run ends, once that is in the journal.
    pub(crate) async fn when_finished(&self, thread: &ThreadRef) -> oneshot::Receiver<Outcome> {
        let (tell, told) = oneshot::channel();
        self.waiting.lock().await.insert(thread.clone(), tell);
        told
    }

    async fn heard(&self, thread: &ThreadRef, outcome: Outcome) {
        if let Some(tell) = self.waiting.lock().await.remove(thread) {
            // Whoever waited may have given up.
            let _heard = tell.send(outcome).is_ok();
        }
    }
}

/// How a run ended, if this fact says so.
pub(crate) fn finished(payload: &[u8]) -> Option<RunFinished> {
    if !payload.windows(FINISHED.len()).any(|part| part == FINISHED) {
        return None;
    }
    match Envelope::decode(payload).ok()?.body {
        Record::Fact(Fact::RunFinished(finished)) => Some(finished),
        Record::Fact(_)
        | Record::Input(_)
        | Record::ToolCall(_)
        | Record::Start(_)
        | Record::Observation(_)
        | Record::Tick => None,
    }
}

#[async_trait]
impl Journal for Counted {
    async fn append(&self, append: Append) -> Result<Appended, AppendError> {
        let is_fact = append.subject.leaf == Leaf::Fact;
        let ended = if is_fact { finished(&append.payload) } else { None };
        let ended = ended.map(|ended| (append.subject.thread.clone(), ended.outcome));
        let began = Instant::now();
        let appended = self.inner.append(append).await;
        self.appends.add(began.elapsed());
        if let (Ok(_), Some((thread, outcome))) = (&appended, ended) {
            self.heard(&thread, outcome).await;
        }
        appended
    }

    async fn read(
        &self,
        thread: &ThreadRef,
        from: Sequence,
        floor: Sequence,
    ) -> Result<Vec<Stored>, BusError> {
        let began = Instant::now();
        let read = self.inner.read(thread, from, floor).await;
        self.reads.add(began.elapsed());
        let count = read.as_ref().map_or(0, Vec::len);
        self.records.fetch_add(u64::try_from(count).unwrap_or(0), Ordering::Relaxed);
        read
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
        let began = Instant::now();
        let scheduled = self.inner.schedule(thread, at, fence).await;
        self.schedules.add(began.elapsed());
        scheduled
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

//! Versions of a process's agents and tools. A thread with a run under way stays with the version
//! that began the run; every other thread goes to the newest. So two versions work side by side over
//! one store, each with its own planner, worker and offer of tools, and no thread has two of them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ports::BusError;
use ports::queues::{Delivery, DeliveryToken, Queue, Queues};
use ports::registry::Registry;
use proto::ids::{InstanceId, ThreadId};
use proto::tool::Registration;
use tokio::sync::{Mutex, watch};
use tokio::time::timeout;

/// How soon work comes again that nobody may take at the moment.
const SOON: Duration = Duration::from_millis(200);
/// Deliveries that wait for one version in one queue; beyond it they are given back.
const WAITING: usize = 64;

/// The number of a version; the first is 1.
pub(crate) type Version = u32;

#[derive(Debug)]
struct Sheet {
    newest: Version,
    held: BTreeMap<ThreadId, Version>,
    /// A thread that no version holds waits meanwhile.
    is_changing: bool,
}

/// Who carries on with which thread.
#[derive(Clone, Debug)]
pub(crate) struct Versions(watch::Sender<Sheet>);

impl Versions {
    /// One version, for all threads.
    pub(crate) fn one() -> Self {
        Self(watch::Sender::new(Sheet { newest: 1, held: BTreeMap::new(), is_changing: false }))
    }

    /// The newest one.
    pub(crate) fn newest(&self) -> Version {
        self.0.borrow().newest
    }

    /// Threads that no version holds wait until [`Versions::renew`] or [`Versions::keep`].
    pub(crate) fn pause(&self) {
        self.0.send_modify(|sheet| sheet.is_changing = true);
    }

    /// Nothing has changed after all.
    pub(crate) fn keep(&self) {
        self.0.send_modify(|sheet| sheet.is_changing = false);
    }

    /// The next version is the newest from now on; `unfinished` threads stay where they are.
    pub(crate) fn renew(&self, unfinished: impl IntoIterator<Item = ThreadId>) {
        self.0.send_modify(|sheet| {
            let last = sheet.newest;
            for thread in unfinished {
                sheet.held.entry(thread).or_insert(last);
            }
            sheet.newest = last.saturating_add(1);
            sheet.is_changing = false;
        });
    }

    /// The threads that stay with a version.
    pub(crate) fn held_by(&self, version: Version) -> Vec<ThreadId> {
        let sheet = self.0.borrow();
        let its = sheet.held.iter().filter(|(_, holder)| **holder == version);
        its.map(|(thread, _)| *thread).collect()
    }

    /// The thread's run is over.
    pub(crate) fn release(&self, thread: ThreadId) {
        self.0.send_modify(|sheet| {
            sheet.held.remove(&thread);
        });
    }

    /// Whose a thread is; nobody's while that changes.
    fn owner(&self, thread: ThreadId) -> Option<Version> {
        let sheet = self.0.borrow();
        let newest = (!sheet.is_changing).then_some(sheet.newest);
        sheet.held.get(&thread).copied().or(newest)
    }
}

/// What was pulled for other versions than the one that pulled.
type Desk = BTreeMap<Version, VecDeque<Delivery>>;

/// Queues that all versions pull from; each gets the work of its threads.
pub(crate) struct Sorter {
    inner: Arc<dyn Queues>,
    versions: Versions,
    desks: Mutex<BTreeMap<Queue, Arc<Mutex<Desk>>>>,
}

impl Sorter {
    pub(crate) fn new(inner: Arc<dyn Queues>, versions: Versions) -> Arc<Self> {
        Arc::new(Self { inner, versions, desks: Mutex::default() })
    }

    /// The queues as one version sees them.
    pub(crate) fn of(self: &Arc<Self>, version: Version) -> Arc<dyn Queues> {
        Arc::new(VersionQueues { sorter: Arc::clone(self), version })
    }

    async fn desk(&self, queue: &Queue) -> Arc<Mutex<Desk>> {
        let mut desks = self.desks.lock().await;
        Arc::clone(desks.entry(queue.clone()).or_default())
    }

    /// One version pulls at a time; the others wait for what it finds.
    async fn pull(
        &self,
        version: Version,
        queue: &Queue,
        max: usize,
        wait: Duration,
    ) -> Result<Vec<Delivery>, BusError> {
        let desk = self.desk(queue).await;
        let Ok(mut desk) = timeout(wait, desk.lock()).await else { return Ok(Vec::new()) };
        if let Some(waiting) = desk.get_mut(&version).filter(|waiting| !waiting.is_empty()) {
            let most = max.min(waiting.len());
            return Ok(waiting.drain(..most).collect());
        }
        let mut ours = Vec::new();
        for delivery in self.inner.pull(queue, max, wait).await? {
            match self.versions.owner(delivery.stored.subject.thread.thread) {
                Some(owner) if owner == version => ours.push(delivery),
                Some(owner) => {
                    let waiting = desk.entry(owner).or_default();
                    if waiting.len() < WAITING {
                        waiting.push_back(delivery);
                    } else {
                        self.give_back(&delivery).await;
                    }
                }
                None => self.give_back(&delivery).await,
            }
        }
        Ok(ours)
    }

    async fn give_back(&self, delivery: &Delivery) {
        if let Err(error) = self.inner.nak(&delivery.token, SOON).await {
            tracing::debug!(%error, "work of another version was not given back");
        }
    }

    /// A version is gone: what waits for it is the newest one's.
    pub(crate) async fn retire(&self, version: Version) {
        let desks: Vec<_> = self.desks.lock().await.values().cloned().collect();
        for desk in desks {
            let left = desk.lock().await.remove(&version).unwrap_or_default();
            for delivery in left {
                self.give_back(&delivery).await;
            }
        }
    }
}

struct VersionQueues {
    sorter: Arc<Sorter>,
    version: Version,
}

#[async_trait]
impl Queues for VersionQueues {
    fn ack_wait(&self) -> Duration {
        self.sorter.inner.ack_wait()
    }

    /// May answer with nothing before `wait` is over, when all that came was another version's.
    async fn pull(
        &self,
        queue: &Queue,
        max: usize,
        wait: Duration,
    ) -> Result<Vec<Delivery>, BusError> {
        self.sorter.pull(self.version, queue, max, wait).await
    }

    async fn ack(&self, token: &DeliveryToken) -> Result<(), BusError> {
        self.sorter.inner.ack(token).await
    }

    async fn nak(&self, token: &DeliveryToken, delay: Duration) -> Result<(), BusError> {
        self.sorter.inner.nak(token, delay).await
    }

    async fn progress(&self, tokens: &[DeliveryToken]) -> Result<(), BusError> {
        self.sorter.inner.progress(tokens).await
    }
}

/// The tools of one version, which no planner of another one sees. They are on offer for as long as
/// the process lives.
#[derive(Debug)]
pub(crate) struct OwnRegistry(watch::Sender<BTreeMap<InstanceId, Registration>>);

impl OwnRegistry {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(BTreeMap::new()))
    }
}

#[async_trait]
impl Registry for OwnRegistry {
    async fn register(&self, registration: Registration) -> Result<(), BusError> {
        let worker = registration.worker.clone();
        self.0.send_modify(|offers| {
            offers.insert(worker, registration);
        });
        Ok(())
    }

    async fn unregister(&self, worker: &InstanceId) -> Result<(), BusError> {
        self.0.send_modify(|offers| {
            offers.remove(worker);
        });
        Ok(())
    }

    async fn registrations(&self) -> Result<Vec<Registration>, BusError> {
        Ok(self.0.borrow().values().cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(n: u64) -> ThreadId {
        ThreadId::from_parts(n, 0)
    }

    #[test]
    fn unfinished_threads_stay_and_all_others_go_to_the_newest() {
        let versions = Versions::one();
        assert_eq!(versions.owner(thread(1)), Some(1));
        versions.pause();
        assert_eq!(versions.owner(thread(1)), None, "who holds it is not known yet");
        versions.renew([thread(1)]);
        assert_eq!((versions.newest(), versions.owner(thread(1))), (2, Some(1)));
        assert_eq!(versions.owner(thread(2)), Some(2));
        versions.pause();
        assert_eq!(versions.owner(thread(1)), Some(1), "a held thread does not wait");
        versions.renew([thread(1), thread(2)]);
        assert_eq!((versions.held_by(1), versions.held_by(2)), (vec![thread(1)], vec![thread(2)]));
        versions.release(thread(1));
        assert_eq!((versions.held_by(1), versions.owner(thread(1))), (vec![], Some(3)));
    }

    #[test]
    fn a_change_that_failed_leaves_the_newest() {
        let versions = Versions::one();
        versions.pause();
        versions.keep();
        assert_eq!((versions.newest(), versions.owner(thread(1))), (1, Some(1)));
    }
}

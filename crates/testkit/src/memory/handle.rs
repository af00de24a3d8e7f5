//! What one process sees of the bus: the gate that every call passes, and the journal.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ports::BusError;
use ports::feed::{Feed, MOST_RECORDS};
use ports::journal::{Append, AppendError, Appended, Fence, Journal, Stored};
use proto::ids::{InstanceId, Partition, Sequence, TenantId, ThreadRef};
use proto::subject::{Leaf, Subject};
use proto::time::Timestamp;
use tokio::time::sleep;

use super::MemoryBus;
use super::faults::{Fault, Faults, Landing, Op, OpKind};
use super::process::Process;

/// How long a process that reaches nothing waits before it says so.
const CUT_OFF_NOTICED: Duration = Duration::from_millis(250);

/// One process's view of a [`MemoryBus`], as all ports at once.
#[derive(Clone)]
pub struct BusHandle {
    pub(super) bus: MemoryBus,
    pub(super) me: InstanceId,
    pub(super) process: Arc<Process>,
}

/// A call that got through the gate.
pub(super) struct Entered(pub(super) Fault);

pub(super) const fn plain(kind: OpKind) -> Op<'static> {
    Op { kind, leaf: None, thread: None, queue: None }
}

pub(super) const fn of_thread(kind: OpKind, thread: &ThreadRef) -> Op<'_> {
    Op { kind, leaf: None, thread: Some(thread), queue: None }
}

const fn of_subject(kind: OpKind, subject: &Subject) -> Op<'_> {
    Op { kind, leaf: Some(&subject.leaf), thread: Some(&subject.thread), queue: None }
}

fn unavailable() -> BusError {
    BusError::Unavailable("the memory bus was told not to answer".to_owned())
}

fn no_answer() -> AppendError {
    AppendError::NoAnswer("the memory bus was told to lose the answer".to_owned())
}

impl BusHandle {
    pub(super) fn new(bus: MemoryBus, me: InstanceId, process: Arc<Process>) -> Self {
        Self { bus, me, process }
    }

    /// The bus behind it.
    pub fn bus(&self) -> &MemoryBus {
        &self.bus
    }

    /// The process that it belongs to.
    pub fn process(&self) -> &InstanceId {
        &self.me
    }

    /// Dies here: this call never returns.
    pub async fn die(&self) -> ! {
        if !self.process.is_dead() {
            self.bus.kill(&self.me);
            self.faults().crashed(&self.me);
        }
        pending().await
    }

    pub(super) fn faults(&self) -> &dyn Faults {
        self.bus.shared.config.faults.as_ref()
    }

    /// Waits until the process can act and draws what happens to the operation.
    pub(super) async fn enter(&self, op: &Op<'_>) -> Result<Entered, BusError> {
        self.process.running().await;
        self.reach().await?;
        let fault = self.faults().on(&self.me, op);
        if fault == Fault::CrashBefore {
            self.die().await;
        }
        if fault == Fault::Unavailable {
            return Err(unavailable());
        }
        if let Fault::Delay(span) = fault {
            sleep(span).await;
            self.process.running().await;
            self.reach().await?;
        }
        Ok(Entered(fault))
    }

    /// The operation took place; waits until the process can hear of it.
    pub(super) async fn leave(&self, entered: &Entered) {
        if entered.0 == Fault::CrashAfter {
            self.die().await;
        }
        if let Fault::DelayAnswer(span) = entered.0 {
            sleep(span).await;
        }
        self.process.running().await;
    }

    async fn reach(&self) -> Result<(), BusError> {
        if self.process.is_cut_off() {
            sleep(CUT_OFF_NOTICED).await;
            self.process.running().await;
            return Err(unavailable());
        }
        Ok(())
    }

    /// The caller waits as long as it has patience, then hears nothing.
    async fn unanswered(&self) -> AppendError {
        sleep(self.bus.shared.config.answer_timeout).await;
        self.process.running().await;
        no_answer()
    }

    fn lands_late(&self, append: Append, later: Duration) {
        let span = self.bus.shared.config.answer_timeout + later;
        self.bus.change(|state, now| state.log.land_later(append, now.after(span)));
    }
}

#[async_trait]
impl Journal for BusHandle {
    async fn append(&self, append: Append) -> Result<Appended, AppendError> {
        let entered = self.enter(&of_subject(OpKind::Append, &append.subject)).await?;
        if entered.0 == Fault::RefuseWithoutNumber && append.fence != Fence::None {
            return Err(AppendError::Fenced { last: None });
        }
        if let Fault::LoseAnswer(landing) = entered.0 {
            match landing {
                Landing::Never => {}
                Landing::Now => {
                    drop(self.bus.change(|state, now| state.log.append(append, now)));
                }
                Landing::After(later) => self.lands_late(append, later),
            }
            return Err(self.unanswered().await);
        }
        let done = self.bus.change(|state, now| state.log.append(append, now));
        self.leave(&entered).await;
        done
    }

    async fn read(
        &self,
        thread: &ThreadRef,
        from: Sequence,
        floor: Sequence,
    ) -> Result<Vec<Stored>, BusError> {
        let entered = self.enter(&of_thread(OpKind::Read, thread)).await?;
        let behind = if let Fault::Stale(behind) = entered.0 { behind } else { 0 };
        let found = self.bus.change(|state, _| {
            let until = state.log.visible(thread, from, floor, behind);
            state.log.read(thread, from, until)
        });
        self.leave(&entered).await;
        Ok(found)
    }

    async fn last(&self, subject: &Subject) -> Result<Option<Stored>, BusError> {
        let entered = self.enter(&of_subject(OpKind::Last, subject)).await?;
        let found = self.bus.change(|state, _| state.log.last(subject));
        self.leave(&entered).await;
        Ok(found)
    }

    async fn schedule(
        &self,
        thread: &ThreadRef,
        at: Timestamp,
        fence: Fence,
    ) -> Result<(), AppendError> {
        let leaf = Leaf::Schedule;
        let op =
            Op { kind: OpKind::Schedule, leaf: Some(&leaf), thread: Some(thread), queue: None };
        let entered = self.enter(&op).await?;
        let set = || {
            let firing = self.faults().firing(thread, at);
            self.bus.change(|state, _| state.log.schedule(thread, at, fence, firing))
        };
        if entered.0 == Fault::RefuseWithoutNumber && fence != Fence::None {
            return Err(AppendError::Fenced { last: None });
        }
        if let Fault::LoseAnswer(landing) = entered.0 {
            if landing != Landing::Never {
                drop(set());
            }
            return Err(self.unanswered().await);
        }
        let done = set();
        self.leave(&entered).await;
        done
    }

    async fn scheduled(&self, thread: &ThreadRef) -> Result<Option<Timestamp>, BusError> {
        let entered = self.enter(&of_thread(OpKind::Scheduled, thread)).await?;
        let at = self.bus.armed(thread);
        self.leave(&entered).await;
        Ok(at)
    }

    async fn purge(&self, thread: &ThreadRef, up_to: Sequence) -> Result<(), BusError> {
        let entered = self.enter(&of_thread(OpKind::Upkeep, thread)).await?;
        self.bus.change(|state, _| state.log.purge(thread, up_to));
        self.leave(&entered).await;
        Ok(())
    }

    async fn threads(&self, tenant: &TenantId, limit: usize) -> Result<Vec<ThreadRef>, BusError> {
        let entered = self.enter(&plain(OpKind::Upkeep)).await?;
        let found = self.bus.change(|state, _| state.log.threads(tenant, limit));
        self.leave(&entered).await;
        Ok(found)
    }

    async fn server_time(&self) -> Result<Timestamp, BusError> {
        let entered = self.enter(&plain(OpKind::Upkeep)).await?;
        let now = self.bus.now();
        self.leave(&entered).await;
        Ok(now)
    }
}

#[async_trait]
impl Feed for BusHandle {
    async fn facts(
        &self,
        partition: Partition,
        from: Sequence,
        limit: usize,
    ) -> Result<Vec<Stored>, BusError> {
        let entered = self.enter(&plain(OpKind::Upkeep)).await?;
        let limit = limit.min(MOST_RECORDS);
        let found = self.bus.change(|state, _| state.log.facts(partition, from, limit));
        self.leave(&entered).await;
        Ok(found)
    }
}

//! Ports with kill points before and after what they do.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use ports::BusError;
use ports::journal::{Append, AppendError, Appended, Fence, Journal, Stored};
use ports::live::{Answering, Holds, Live, OwnerAnswer, Subscription, Topic};
use ports::queues::{Delivery, DeliveryToken, Queue, Queues};
use proto::call::Start;
use proto::envelope::Envelope;
use proto::fact::Fact;
use proto::ids::{InstanceId, Sequence, TenantId, ThreadRef};
use proto::live::HeldQuestion;
use proto::record::Record;
use proto::subject::Subject;
use proto::time::Timestamp;

use super::kill::{KillPoint as Point, KillSwitch};
use super::kill_memory::KillMemory;
use crate::engine::Ports;

/// The same ports, with the switch in them.
pub(crate) fn with_switch(ports: Ports, switch: &KillSwitch) -> Ports {
    if !switch.is_armed() {
        return ports;
    }
    Ports {
        journal: Arc::new(KillJournal { inner: ports.journal, switch: switch.clone() }),
        queues: Arc::new(KillQueues { inner: ports.queues, switch: switch.clone() }),
        live: Arc::new(KillLive { inner: ports.live, switch: switch.clone() }),
        working: Arc::new(KillMemory { inner: ports.working, switch: switch.clone() }),
        ..ports
    }
}

struct KillJournal {
    inner: Arc<dyn Journal>,
    switch: KillSwitch,
}

/// The points around the append of a record.
fn around(record: &Record) -> Option<(Point, Point)> {
    match record {
        Record::Fact(fact) => Some(around_fact(fact)),
        Record::ToolCall(call) if call.terms.effect.is_safe_early() => {
            Some((Point::BeforeEarlyCall, Point::AfterEarlyCall))
        }
        Record::ToolCall(_) => Some((Point::BeforeCall, Point::AfterCall)),
        Record::Start(Start::Started(_)) => Some((Point::BeforeStart, Point::AfterStart)),
        Record::Start(Start::Barred(_)) => Some((Point::BeforeBar, Point::AfterBar)),
        Record::Start(Start::Held(_)) => Some((Point::BeforeHold, Point::AfterHold)),
        Record::Observation(_) => Some((Point::BeforeObservation, Point::AfterObservation)),
        Record::Input(_) => Some((Point::BeforeInput, Point::AfterInput)),
        // The bus writes it.
        Record::Tick => None,
    }
}

fn around_fact(fact: &Fact) -> (Point, Point) {
    match fact {
        Fact::TurnStarted(_) => (Point::BeforeTurnStarted, Point::AfterTurnStarted),
        Fact::TurnCompleted(_) | Fact::TurnSealed(_) => {
            (Point::BeforeTurnEnded, Point::AfterTurnEnded)
        }
        Fact::CallClosed { .. } => (Point::BeforeCallClosed, Point::AfterCallClosed),
        Fact::RunFinished(_) => (Point::BeforeRunFinished, Point::AfterRunFinished),
        Fact::ApprovalAsked(_) => (Point::BeforeApprovalAsked, Point::AfterApprovalAsked),
        Fact::Parked { .. } => (Point::BeforeParked, Point::AfterParked),
        Fact::Restored(_) => (Point::BeforeRestored, Point::AfterRestored),
        Fact::Checkpoint(_) => (Point::BeforeCheckpoint, Point::AfterCheckpoint),
    }
}

#[async_trait]
impl Journal for KillJournal {
    async fn append(&self, append: Append) -> Result<Appended, AppendError> {
        let record = Envelope::decode(&append.payload).ok().map(|envelope| envelope.body);
        let points = record.as_ref().and_then(around);
        if let Some((before, _)) = points {
            self.switch.reached(before);
        }
        let appended = self.inner.append(append).await?;
        if let Some((_, after)) = points {
            self.switch.reached(after);
        }
        if matches!(record, Some(Record::Start(Start::Started(_)))) {
            self.switch.runs();
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
        self.switch.reached(Point::BeforeSchedule);
        self.inner.schedule(thread, at, fence).await?;
        self.switch.reached(Point::AfterSchedule);
        Ok(())
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

    fn unbroken(&self) -> Option<u64> {
        self.inner.unbroken()
    }
}

struct KillQueues {
    inner: Arc<dyn Queues>,
    switch: KillSwitch,
}

#[async_trait]
impl Queues for KillQueues {
    fn ack_wait(&self) -> Duration {
        self.inner.ack_wait()
    }

    async fn pull(
        &self,
        queue: &Queue,
        max: usize,
        wait: Duration,
    ) -> Result<Vec<Delivery>, BusError> {
        let deliveries = self.inner.pull(queue, max, wait).await?;
        if !deliveries.is_empty() {
            self.switch.reached(Point::Pulled);
        }
        Ok(deliveries)
    }

    async fn ack(&self, token: &DeliveryToken) -> Result<(), BusError> {
        self.switch.reached(Point::BeforeAck);
        self.inner.ack(token).await?;
        self.switch.reached(Point::AfterAck);
        Ok(())
    }

    async fn nak(&self, token: &DeliveryToken, delay: Duration) -> Result<(), BusError> {
        self.inner.nak(token, delay).await
    }

    async fn progress(&self, tokens: &[DeliveryToken]) -> Result<(), BusError> {
        self.inner.progress(tokens).await
    }
}

struct KillLive {
    inner: Arc<dyn Live>,
    switch: KillSwitch,
}

#[async_trait]
impl Live for KillLive {
    async fn publish(&self, topic: &Topic, message: Bytes) -> Result<(), BusError> {
        self.inner.publish(topic, message).await?;
        if matches!(topic, Topic::Text(_)) {
            self.switch.reached(Point::Streaming);
        }
        Ok(())
    }

    async fn subscribe(&self, topic: &Topic) -> Result<Box<dyn Subscription>, BusError> {
        self.inner.subscribe(topic).await
    }

    async fn answer(&self, me: &InstanceId, holds: Holds) -> Result<Box<dyn Answering>, BusError> {
        self.inner.answer(me, holds).await
    }

    async fn ask(
        &self,
        owner: &InstanceId,
        question: &HeldQuestion,
        patience: Duration,
    ) -> Result<OwnerAnswer, BusError> {
        self.inner.ask(owner, question, patience).await
    }
}

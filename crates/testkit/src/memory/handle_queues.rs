//! Queues, live topics, artifacts and registry as one process sees them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use ports::BusError;
use ports::artifacts::Artifacts;
use ports::freezes::{Freezes, with};
use ports::live::{Answering, Holds, Live, OwnerAnswer, Subscription, Topic};
use ports::queues::{Delivery, DeliveryToken, Queue, Queues};
use ports::registry::Registry;
use proto::freeze::{Freeze, FreezeTarget};
use proto::hash::artifact_id;
use proto::ids::{ArtifactId, InstanceId, ThreadRef};
use proto::live::HeldQuestion;
use proto::observation::ArtifactRef;
use proto::tool::Registration;
use tokio::time::{Instant, sleep, sleep_until};

use super::consumers::{Manner, Taken};
use super::faults::{Fault, Op, OpKind};
use super::handle::{BusHandle, of_thread, plain};

impl BusHandle {
    /// What is ready now, or when to look again.
    fn try_take(
        &self,
        queue: &Queue,
        max: usize,
        manner: Manner,
    ) -> Result<Vec<Delivery>, Instant> {
        let (taken, due) = self.bus.change(|state, _| {
            (state.log.consumers.take(queue, max, manner), state.log.next_due())
        });
        let Some(Taken { deliveries, next }) = taken else { return Ok(Vec::new()) };
        if deliveries.is_empty() {
            return Err(due.map_or(next, |at| next.min(self.bus.instant_of(at))));
        }
        Ok(deliveries)
    }

    async fn take(
        &self,
        queue: &Queue,
        max: usize,
        wait: Duration,
        manner: Manner,
    ) -> Vec<Delivery> {
        let until = Instant::now() + wait;
        let notice = self.bus.change(|state, _| state.log.open(queue));
        loop {
            // Made before the look, so that what arrives after it is noticed.
            let changed = notice.notified();
            let wake = match self.try_take(queue, max, manner) {
                Ok(deliveries) => return deliveries,
                Err(wake) => wake.min(until),
            };
            if Instant::now() >= until {
                return Vec::new();
            }
            tokio::select! {
                biased;
                () = changed => {}
                () = sleep_until(wake) => {}
                () = self.process.out_of_touch() => {
                    self.process.alive().await;
                    return Vec::new();
                }
            }
        }
    }
}

#[async_trait]
impl Queues for BusHandle {
    fn ack_wait(&self) -> Duration {
        self.bus.shared.config.ack_wait
    }

    async fn pull(
        &self,
        queue: &Queue,
        max: usize,
        wait: Duration,
    ) -> Result<Vec<Delivery>, BusError> {
        let op = Op { kind: OpKind::Pull, leaf: None, thread: None, queue: Some(queue) };
        let entered = self.enter(&op).await?;
        let manner = Manner {
            newest_first: entered.0 == Fault::NewestFirst,
            twice: entered.0 == Fault::DeliverTwice,
        };
        let deliveries = self.take(queue, max, wait, manner).await;
        self.leave(&entered).await;
        Ok(deliveries)
    }

    async fn ack(&self, token: &DeliveryToken) -> Result<(), BusError> {
        let entered = self.enter(&plain(OpKind::Ack)).await?;
        if entered.0 != Fault::Lose {
            let acked = self.bus.change(|state, now| state.log.consumers.ack(token, now));
            if let Some((queue, stored)) = acked {
                self.faults().acked(&self.me, &queue, &stored);
            }
        }
        self.leave(&entered).await;
        Ok(())
    }

    async fn nak(&self, token: &DeliveryToken, delay: Duration) -> Result<(), BusError> {
        let entered = self.enter(&plain(OpKind::Nak)).await?;
        if entered.0 != Fault::Lose {
            self.bus.change(|state, _| state.log.consumers.nak(token, delay));
        }
        self.leave(&entered).await;
        Ok(())
    }

    async fn progress(&self, tokens: &[DeliveryToken]) -> Result<(), BusError> {
        let entered = self.enter(&plain(OpKind::Progress)).await?;
        if entered.0 != Fault::Lose {
            self.bus.change(|state, _| {
                for token in tokens {
                    state.log.consumers.progress(token);
                }
            });
        }
        self.leave(&entered).await;
        Ok(())
    }
}

#[async_trait]
impl Live for BusHandle {
    async fn publish(&self, topic: &Topic, message: Bytes) -> Result<(), BusError> {
        let entered = self.enter(&plain(OpKind::Publish)).await?;
        if entered.0 != Fault::Lose {
            self.bus.shared.topics.publish(topic, &message);
        }
        self.leave(&entered).await;
        Ok(())
    }

    async fn subscribe(&self, topic: &Topic) -> Result<Box<dyn Subscription>, BusError> {
        let entered = self.enter(&plain(OpKind::Listen)).await?;
        let subscription = self.bus.shared.topics.subscribe(topic);
        self.leave(&entered).await;
        Ok(subscription)
    }

    async fn answer(&self, me: &InstanceId, holds: Holds) -> Result<Box<dyn Answering>, BusError> {
        let entered = self.enter(&plain(OpKind::Listen)).await?;
        let answering = self.bus.shared.topics.answer(me, holds);
        self.leave(&entered).await;
        Ok(answering)
    }

    async fn ask(
        &self,
        owner: &InstanceId,
        question: &HeldQuestion,
        patience: Duration,
    ) -> Result<OwnerAnswer, BusError> {
        let entered = self.enter(&of_thread(OpKind::Ask, &question.thread)).await?;
        let answer = match self.bus.shared.topics.who(owner) {
            None => OwnerAnswer::NoResponder,
            Some(_) if !self.bus.is_in_touch(owner) || entered.0 == Fault::Lose => {
                sleep(patience).await;
                OwnerAnswer::Silent
            }
            Some(holds) if holds(question) => OwnerAnswer::Holding,
            Some(_) => OwnerAnswer::NotHolding,
        };
        self.leave(&entered).await;
        Ok(answer)
    }
}

#[async_trait]
impl Artifacts for BusHandle {
    async fn put(&self, thread: &ThreadRef, bytes: Bytes) -> Result<ArtifactRef, BusError> {
        let entered = self.enter(&of_thread(OpKind::Artifact, thread)).await?;
        let id = artifact_id(&bytes);
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.bus.change(|state, _| {
            state.artifacts.entry(thread.clone()).or_default().insert(id.clone(), bytes)
        });
        self.leave(&entered).await;
        Ok(ArtifactRef { id, bytes: length })
    }

    async fn get(&self, thread: &ThreadRef, id: &ArtifactId) -> Result<Option<Bytes>, BusError> {
        let entered = self.enter(&of_thread(OpKind::Artifact, thread)).await?;
        let found = self.bus.change(|state, _| {
            state.artifacts.get(thread).and_then(|payloads| payloads.get(id)).cloned()
        });
        self.leave(&entered).await;
        Ok(found)
    }

    async fn remove(&self, thread: &ThreadRef, id: &ArtifactId) -> Result<(), BusError> {
        let entered = self.enter(&of_thread(OpKind::Artifact, thread)).await?;
        self.bus.change(|state, _| {
            state.artifacts.get_mut(thread).and_then(|payloads| payloads.remove(id))
        });
        self.leave(&entered).await;
        Ok(())
    }

    async fn erase(&self, thread: &ThreadRef) -> Result<(), BusError> {
        let entered = self.enter(&of_thread(OpKind::Artifact, thread)).await?;
        self.bus.change(|state, _| state.artifacts.remove(thread));
        self.leave(&entered).await;
        Ok(())
    }
}

#[async_trait]
impl Registry for BusHandle {
    async fn register(&self, registration: Registration) -> Result<(), BusError> {
        let entered = self.enter(&plain(OpKind::Offer)).await?;
        let until = Instant::now() + self.bus.shared.config.offer_ttl;
        let worker = registration.worker.clone();
        self.bus.change(|state, _| state.offers.insert(worker, (until, Arc::new(registration))));
        self.leave(&entered).await;
        Ok(())
    }

    async fn unregister(&self, worker: &InstanceId) -> Result<(), BusError> {
        let entered = self.enter(&plain(OpKind::Offer)).await?;
        self.bus.change(|state, _| state.offers.remove(worker));
        self.leave(&entered).await;
        Ok(())
    }

    async fn registrations(&self) -> Result<Vec<Registration>, BusError> {
        let entered = self.enter(&plain(OpKind::Offer)).await?;
        let now = Instant::now();
        let offers = self.bus.change(|state, _| {
            state.offers.retain(|_, (until, _)| *until > now);
            state.offers.values().map(|(_, offer)| Registration::clone(offer)).collect()
        });
        self.leave(&entered).await;
        Ok(offers)
    }
}

#[async_trait]
impl Freezes for BusHandle {
    async fn freeze(&self, freeze: Freeze) -> Result<(), BusError> {
        let entered = self.enter(&plain(OpKind::Freeze)).await?;
        let frozen = self.bus.change(|state, _| {
            with(state.frozen.values().cloned().collect(), freeze.clone())?;
            state.frozen.insert(freeze.target.clone(), freeze);
            Ok(())
        });
        self.leave(&entered).await;
        frozen
    }

    async fn thaw(&self, target: &FreezeTarget) -> Result<bool, BusError> {
        let entered = self.enter(&plain(OpKind::Freeze)).await?;
        let was = self.bus.change(|state, _| state.frozen.remove(target).is_some());
        self.leave(&entered).await;
        Ok(was)
    }

    async fn frozen(&self) -> Result<Vec<Freeze>, BusError> {
        let entered = self.enter(&plain(OpKind::Freeze)).await?;
        let frozen = self.bus.change(|state, _| state.frozen.values().cloned().collect());
        self.leave(&entered).await;
        Ok(frozen)
    }
}

//! Queues, live topics, artifacts and a registry that break one rule.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use ports::BusError;
use ports::artifacts::Artifacts;
use ports::live::{Answering, Holds, Live, OwnerAnswer, Subscription, Topic};
use ports::queues::{Delivery, DeliveryToken, Queue, Queues};
use ports::registry::Registry;
use proto::ids::{ArtifactId, InstanceId, Partition, Sequence, ThreadId, ThreadRef, ToolName};
use proto::live::HeldQuestion;
use proto::observation::ArtifactRef;
use proto::subject::Leaf;
use proto::time::Timestamp;
use proto::tool::Registration;
use testkit::memory::BusHandle;
use tokio::sync::Mutex;
use tokio::time::sleep;

/// What flaws remember, shared by all processes of a world.
#[derive(Default)]
pub(crate) struct Notes {
    pub(crate) schedules: BTreeMap<ThreadRef, Timestamp>,
    acked: BTreeSet<DeliveryToken>,
    again: Vec<Delivery>,
    opened: BTreeSet<Queue>,
    strays: BTreeSet<Sequence>,
    subscriptions: usize,
    said: Vec<(Topic, Bytes)>,
    puts: usize,
    offers: BTreeMap<InstanceId, Registration>,
}

/// A bus with one flaw; the flaw has the name of the rule that it breaks.
pub(crate) struct Flawed {
    pub(crate) flaw: &'static str,
    pub(crate) inner: BusHandle,
    pub(crate) notes: Arc<Mutex<Notes>>,
}

/// Belongs to an owner that never goes.
struct Immortal;

impl Answering for Immortal {}

fn with_id(thread: &ThreadRef, n: u64) -> ThreadRef {
    ThreadRef { thread: ThreadId::from_parts(n, 0), ..thread.clone() }
}

impl Flawed {
    pub(crate) fn is(&self, rule: &str) -> bool {
        self.flaw == rule
    }

    /// Where the flaw looks when the queue itself is empty.
    fn detour(&self, queue: &Queue) -> Option<Queue> {
        let part = Partition(0);
        match (self.flaw, queue) {
            ("inputs_go_to_the_inbox_only", Queue::Inbox(_)) => Some(Queue::Progress(part)),
            ("observations_go_to_progress_only", Queue::Progress(_)) => Some(Queue::Inbox(part)),
            ("calls_go_to_the_queue_of_their_tool_only", Queue::Tool(..)) => {
                Some(Queue::Tool(part, ToolName::new("ab").unwrap()))
            }
            ("a_queue_serves_one_partition", Queue::Inbox(_)) => Some(Queue::Inbox(Partition(1))),
            _ => None,
        }
    }

    /// A fact or start, each once, as if a queue covered it.
    async fn stray(&self) -> Option<Delivery> {
        let mut notes = self.notes.lock().await;
        let history = self.inner.bus().history(0);
        let stored = history.iter().find(|stored| {
            matches!(stored.subject.leaf, Leaf::Fact | Leaf::Start(_))
                && !notes.strays.contains(&stored.sequence)
        })?;
        notes.strays.insert(stored.sequence);
        let token = DeliveryToken("stray".to_owned());
        Some(Delivery { stored: (**stored).clone(), token, count: 1 })
    }

    /// Acks everything that is in a queue when it is first used.
    async fn skip_old(&self, queue: &Queue) {
        if self.notes.lock().await.opened.insert(queue.clone()) {
            for old in self.inner.pull(queue, 100, Duration::ZERO).await.unwrap() {
                self.inner.ack(&old.token).await.unwrap();
            }
        }
    }

    async fn spoil(&self, found: &mut Vec<Delivery>) {
        let wait = self.inner.ack_wait();
        for delivery in found.iter_mut() {
            match self.flaw {
                "a_delivery_is_the_record_as_it_was_written" => {
                    delivery.stored.payload = Bytes::new();
                }
                "a_record_goes_to_one_puller_at_a_time" => {
                    self.inner.nak(&delivery.token, Duration::ZERO).await.unwrap();
                }
                "a_silent_holder_loses_its_delivery_after_the_ack_wait" => {
                    self.inner.nak(&delivery.token, wait / 2).await.unwrap();
                }
                "a_dropped_pull_loses_nothing" => {
                    self.inner.ack(&delivery.token).await.unwrap();
                    sleep(Duration::from_millis(100)).await;
                }
                _ => {}
            }
        }
        if self.is("a_tick_is_delivered_to_the_planners") {
            found.retain(|delivery| delivery.stored.subject.leaf != Leaf::Tick);
        }
        if self.is("several_pullers_share_a_queue") {
            self.notes.lock().await.again.extend(found.iter().cloned());
        }
    }
}

#[async_trait]
impl Queues for Flawed {
    fn ack_wait(&self) -> Duration {
        self.inner.ack_wait()
    }

    async fn pull(
        &self,
        queue: &Queue,
        max: usize,
        wait: Duration,
    ) -> Result<Vec<Delivery>, BusError> {
        if let Some(again) = self.notes.lock().await.again.pop() {
            return Ok(vec![again]);
        }
        let (mut max, mut wait) = (max, wait);
        match self.flaw {
            "a_pull_takes_no_more_than_it_asked_for" => max += 1,
            "an_empty_pull_returns_after_its_wait" => wait *= 1_000,
            "a_waiting_pull_is_woken" => sleep(mem::take(&mut wait)).await,
            "records_older_than_the_queue_are_delivered" => self.skip_old(queue).await,
            _ => {}
        }
        let mut found = self.inner.pull(queue, max, wait).await?;
        if let (true, Some(detour)) = (found.is_empty(), self.detour(queue)) {
            found = self.inner.pull(&detour, max, Duration::ZERO).await?;
        }
        if found.is_empty() && self.is("facts_and_starts_go_nowhere") {
            found.extend(self.stray().await);
        }
        self.spoil(&mut found).await;
        Ok(found)
    }

    async fn ack(&self, token: &DeliveryToken) -> Result<(), BusError> {
        let first = self.notes.lock().await.acked.insert(token.clone());
        match self.flaw {
            "an_acked_record_does_not_come_again" => Ok(()),
            "an_ack_may_be_repeated" if !first => Err(BusError::Refused("acked".to_owned())),
            _ => self.inner.ack(token).await,
        }
    }

    async fn nak(&self, token: &DeliveryToken, delay: Duration) -> Result<(), BusError> {
        let careless = self.is("a_returned_delivery_comes_again_after_its_delay");
        self.inner.nak(token, if careless { Duration::ZERO } else { delay }).await
    }

    async fn progress(&self, tokens: &[DeliveryToken]) -> Result<(), BusError> {
        if self.is("progress_keeps_a_delivery") {
            return Ok(());
        }
        self.inner.progress(tokens).await
    }
}

#[async_trait]
impl Live for Flawed {
    async fn publish(&self, topic: &Topic, message: Bytes) -> Result<(), BusError> {
        let said = {
            let mut notes = self.notes.lock().await;
            notes.said.push((topic.clone(), message.clone()));
            notes.said.len()
        };
        match (self.flaw, topic) {
            ("a_reader_hears_what_another_process_says", _) => return Ok(()),
            ("a_slow_reader_loses_the_oldest", _) if said > 256 => return Ok(()),
            ("a_slow_reader_holds_nobody_up", _) if said > 256 => std::future::pending().await,
            ("text_and_hints_are_apart", Topic::Text(thread)) => {
                self.inner.publish(&Topic::Control(thread.clone()), message.clone()).await?;
            }
            ("a_reader_hears_its_thread_only", Topic::Text(thread)) => {
                let shared = Topic::Text(with_id(thread, 0));
                return self.inner.publish(&shared, message).await;
            }
            _ => {}
        }
        self.inner.publish(topic, message).await
    }

    async fn subscribe(&self, topic: &Topic) -> Result<Box<dyn Subscription>, BusError> {
        let (earlier, said) = {
            let mut notes = self.notes.lock().await;
            notes.subscriptions += 1;
            (notes.subscriptions - 1, notes.said.clone())
        };
        let heard = match (self.flaw, topic) {
            ("every_reader_hears", Topic::Text(thread)) if earlier > 0 => {
                Topic::Text(with_id(thread, 9))
            }
            ("a_reader_hears_its_thread_only", Topic::Text(thread)) => {
                Topic::Text(with_id(thread, 0))
            }
            ("the_control_of_all_threads_is_heard_together", Topic::AllControl) => {
                let tenant = proto::ids::TenantId::new("acme").unwrap();
                let thread = ThreadId::from_parts(0, 0);
                Topic::Control(ThreadRef { partition: Partition(0), tenant, thread })
            }
            _ => topic.clone(),
        };
        let subscription = self.inner.subscribe(&heard).await?;
        if self.is("a_late_reader_hears_nothing_old") {
            for (topic, message) in said {
                self.inner.publish(&topic, message).await?;
            }
        }
        Ok(subscription)
    }

    async fn answer(&self, me: &InstanceId, holds: Holds) -> Result<Box<dyn Answering>, BusError> {
        let guard = self.inner.answer(me, holds).await?;
        if self.is("a_dropped_guard_is_gone") {
            mem::forget(guard);
            return Ok(Box::new(Immortal));
        }
        Ok(guard)
    }

    async fn ask(
        &self,
        owner: &InstanceId,
        question: &HeldQuestion,
        patience: Duration,
    ) -> Result<OwnerAnswer, BusError> {
        let answer = self.inner.ask(owner, question, patience).await?;
        Ok(match (self.flaw, answer) {
            ("an_owner_answers_for_what_it_holds", _) => OwnerAnswer::Holding,
            ("a_name_that_nobody_answers_to_is_gone", OwnerAnswer::NoResponder) => {
                OwnerAnswer::Silent
            }
            _ => answer,
        })
    }
}

#[async_trait]
impl Artifacts for Flawed {
    async fn put(&self, thread: &ThreadRef, bytes: Bytes) -> Result<ArtifactRef, BusError> {
        let again = {
            let mut notes = self.notes.lock().await;
            notes.puts += 1;
            notes.puts > 1
        };
        let shared = self.is("a_payload_belongs_to_its_thread");
        let thread = if shared { with_id(thread, 0) } else { thread.clone() };
        let mut stored = self.inner.put(&thread, bytes).await?;
        match self.flaw {
            "a_payload_is_named_by_its_hash" => stored.bytes = 0,
            "storing_again_changes_nothing" if again => self.inner.erase(&thread).await?,
            _ => {}
        }
        Ok(stored)
    }

    async fn get(&self, thread: &ThreadRef, id: &ArtifactId) -> Result<Option<Bytes>, BusError> {
        let shared = self.is("a_payload_belongs_to_its_thread");
        let thread = if shared { with_id(thread, 0) } else { thread.clone() };
        let found = self.inner.get(&thread, id).await?;
        match self.flaw {
            "a_payload_comes_back_in_every_process" if self.inner.process().as_str() != "a" => {
                Ok(None)
            }
            "a_large_payload_comes_back" => Ok(found.map(|bytes| bytes.slice(..1 << 20))),
            "an_unknown_payload_is_none" if found.is_none() => {
                Err(BusError::Refused("no such payload".to_owned()))
            }
            _ => Ok(found),
        }
    }

    async fn remove(&self, thread: &ThreadRef, id: &ArtifactId) -> Result<(), BusError> {
        if self.is("a_removed_payload_is_gone_and_others_stay") {
            return self.inner.erase(thread).await;
        }
        self.inner.remove(thread, id).await
    }

    async fn erase(&self, thread: &ThreadRef) -> Result<(), BusError> {
        if self.is("erase_removes_the_payloads_of_its_thread") {
            return Ok(());
        }
        if self.is("erase_keeps_other_threads") {
            for n in 1..=2 {
                let id = ThreadId::from_parts(1_767_225_600_000 + n, u128::from(n));
                self.inner.erase(&ThreadRef { thread: id, ..thread.clone() }).await?;
            }
        }
        self.inner.erase(thread).await
    }
}

#[async_trait]
impl Registry for Flawed {
    async fn register(&self, registration: Registration) -> Result<(), BusError> {
        let worker = registration.worker.clone();
        let known = {
            let mut notes = self.notes.lock().await;
            notes.offers.insert(worker.clone(), registration.clone()).is_some()
        };
        match self.flaw {
            "a_renewed_offer_replaces_the_earlier_one" | "a_renewed_offer_does_not_fade"
                if known =>
            {
                return Ok(());
            }
            "offers_of_several_workers_are_seen_together" => {
                for other in self.inner.registrations().await? {
                    self.inner.unregister(&other.worker).await?;
                }
            }
            _ => {}
        }
        self.inner.register(registration).await
    }

    async fn unregister(&self, worker: &InstanceId) -> Result<(), BusError> {
        if self.is("an_offer_that_is_taken_back_is_gone") {
            return Ok(());
        }
        if self.is("taking_back_touches_no_other_worker") {
            for other in self.inner.registrations().await? {
                self.inner.unregister(&other.worker).await?;
            }
        }
        self.inner.unregister(worker).await
    }

    async fn registrations(&self) -> Result<Vec<Registration>, BusError> {
        match self.flaw {
            "an_offer_is_seen_by_every_process" if self.inner.process().as_str() != "a" => {
                Ok(Vec::new())
            }
            "an_offer_fades_unless_it_is_renewed" => {
                Ok(self.notes.lock().await.offers.values().cloned().collect())
            }
            _ => self.inner.registrations().await,
        }
    }
}

//! Live text, hints and the question whether an owner lives: all in memory, nothing kept.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use ports::BusError;
use ports::live::{Answering, Holds, Live, OwnerAnswer, Subscription, Topic};
use proto::ids::{InstanceId, ThreadRef};
use proto::live::HeldQuestion;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::guarded::Guarded;
use crate::journal::check_size;
use crate::{RECORD_LIMIT, SqliteBus};

/// Messages that wait for a slow reader before it loses the oldest.
const BACKLOG: usize = 256;

type Said = (ThreadRef, Bytes);
type Owners = BTreeMap<InstanceId, (u64, Holds)>;

/// Topics that somebody listens to.
#[derive(Debug, Default)]
struct Topics(Guarded<BTreeMap<Topic, broadcast::Sender<Said>>>);

/// Everything said on this bus.
#[derive(Default)]
pub(crate) struct Air {
    topics: Arc<Topics>,
    owners: Arc<Guarded<Owners>>,
    numbers: Guarded<u64>,
}

impl Topics {
    fn say(&self, topic: &Topic, said: Said) {
        self.0.with(|topics| {
            if let Some(sender) = topics.get(topic) {
                // Nobody listens any more: the message is lost, which is allowed.
                drop(sender.send(said));
            }
        });
    }

    fn listen(&self, topic: &Topic) -> broadcast::Receiver<Said> {
        self.0.with(|topics| {
            let sender =
                topics.entry(topic.clone()).or_insert_with(|| broadcast::channel(BACKLOG).0);
            sender.subscribe()
        })
    }

    /// Drops a topic whose last listener, one that still counts, is leaving.
    fn leave(&self, topic: &Topic) {
        self.0.with(|topics| {
            if topics.get(topic).is_some_and(|sender| sender.receiver_count() <= 1) {
                topics.remove(topic);
            }
        });
    }
}

struct Listener {
    topic: Topic,
    topics: Arc<Topics>,
    receiver: broadcast::Receiver<Said>,
}

#[async_trait]
impl Subscription for Listener {
    async fn next(&mut self) -> Option<(ThreadRef, Bytes)> {
        loop {
            match self.receiver.recv().await {
                Ok(said) => return Some(said),
                Err(RecvError::Lagged(lost)) => {
                    tracing::debug!(lost, topic = ?self.topic, "a live reader is too slow");
                }
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.topics.leave(&self.topic);
    }
}

struct Owner {
    name: InstanceId,
    number: u64,
    owners: Arc<Guarded<Owners>>,
}

impl Answering for Owner {}

impl Drop for Owner {
    fn drop(&mut self) {
        self.owners.with(|owners| {
            if owners.get(&self.name).is_some_and(|(number, _)| *number == self.number) {
                owners.remove(&self.name);
            }
        });
    }
}

#[async_trait]
impl Live for SqliteBus {
    async fn publish(&self, topic: &Topic, message: Bytes) -> Result<(), BusError> {
        check_size(&message, RECORD_LIMIT)?;
        let topics = &self.inner.air.topics;
        match topic {
            Topic::Text(thread) => topics.say(topic, (thread.clone(), message)),
            Topic::Control(thread) => {
                topics.say(topic, (thread.clone(), message.clone()));
                topics.say(&Topic::AllControl, (thread.clone(), message));
            }
            Topic::AllControl => {
                let why = "a hint is for one thread".to_owned();
                return Err(BusError::Refused(why));
            }
        }
        Ok(())
    }

    async fn subscribe(&self, topic: &Topic) -> Result<Box<dyn Subscription>, BusError> {
        let topics = Arc::clone(&self.inner.air.topics);
        let receiver = topics.listen(topic);
        Ok(Box::new(Listener { topic: topic.clone(), topics, receiver }))
    }

    async fn answer(&self, me: &InstanceId, holds: Holds) -> Result<Box<dyn Answering>, BusError> {
        let air = &self.inner.air;
        let number = air.numbers.with(|number| {
            *number = number.saturating_add(1);
            *number
        });
        air.owners.with(|owners| owners.insert(me.clone(), (number, holds)));
        Ok(Box::new(Owner { name: me.clone(), number, owners: Arc::clone(&air.owners) }))
    }

    async fn ask(
        &self,
        owner: &InstanceId,
        question: &HeldQuestion,
        _patience: Duration,
    ) -> Result<OwnerAnswer, BusError> {
        // The owner lives in this process and answers at once, or it is gone.
        let holds = self
            .inner
            .air
            .owners
            .with(|owners| owners.get(owner).map(|(_, holds)| Arc::clone(holds)));
        Ok(match holds {
            None => OwnerAnswer::NoResponder,
            Some(holds) if holds(question) => OwnerAnswer::Holding,
            Some(_) => OwnerAnswer::NotHolding,
        })
    }
}

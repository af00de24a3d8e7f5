//! Messages that nobody keeps, and who answers to which name.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use bytes::Bytes;
use ports::live::{Answering, Holds, Subscription, Topic};
use proto::ids::{InstanceId, ThreadRef};
use tokio::sync::Notify;

use crate::lock::Lock;

/// How many messages wait for a slow reader before the oldest is dropped.
const BACKLOG: usize = 256;

#[derive(Debug, Default)]
struct Mailbox {
    waiting: Lock<VecDeque<(ThreadRef, Bytes)>>,
    filled: Notify,
}

#[derive(Default)]
pub(super) struct Topics {
    readers: Lock<Vec<(Topic, Weak<Mailbox>)>>,
    owners: Arc<Lock<BTreeMap<InstanceId, (u64, Holds)>>>,
    guards: Lock<u64>,
}

struct Reader(Arc<Mailbox>);

struct Guard {
    owner: InstanceId,
    number: u64,
    owners: Arc<Lock<BTreeMap<InstanceId, (u64, Holds)>>>,
}

impl Topics {
    pub(super) fn publish(&self, topic: &Topic, message: &Bytes) {
        let (Topic::Text(thread) | Topic::Control(thread)) = topic else { return };
        let hears = |wanted: &Topic| {
            wanted == topic || matches!((wanted, topic), (Topic::AllControl, Topic::Control(_)))
        };
        self.readers.lock().retain(|(wanted, mailbox)| {
            let Some(mailbox) = mailbox.upgrade() else { return false };
            if hears(wanted) {
                mailbox.put(thread.clone(), message.clone());
            }
            true
        });
    }

    pub(super) fn subscribe(&self, topic: &Topic) -> Box<dyn Subscription> {
        let mailbox = Arc::new(Mailbox::default());
        self.readers.lock().push((topic.clone(), Arc::downgrade(&mailbox)));
        Box::new(Reader(mailbox))
    }

    pub(super) fn answer(&self, me: &InstanceId, holds: Holds) -> Box<dyn Answering> {
        let number = {
            let mut guards = self.guards.lock();
            *guards += 1;
            *guards
        };
        self.owners.lock().insert(me.clone(), (number, holds));
        Box::new(Guard { owner: me.clone(), number, owners: Arc::clone(&self.owners) })
    }

    pub(super) fn silence(&self, owner: &InstanceId) {
        self.owners.lock().remove(owner);
    }

    pub(super) fn who(&self, owner: &InstanceId) -> Option<Holds> {
        self.owners.lock().get(owner).map(|(_, holds)| Arc::clone(holds))
    }
}

impl Mailbox {
    fn put(&self, thread: ThreadRef, message: Bytes) {
        let mut waiting = self.waiting.lock();
        if waiting.len() == BACKLOG {
            waiting.pop_front();
        }
        waiting.push_back((thread, message));
        self.filled.notify_one();
    }
}

#[async_trait]
impl Subscription for Reader {
    async fn next(&mut self) -> Option<(ThreadRef, Bytes)> {
        loop {
            let next = self.0.waiting.lock().pop_front();
            if next.is_some() {
                return next;
            }
            self.0.filled.notified().await;
        }
    }
}

impl Answering for Guard {}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut owners = self.owners.lock();
        if owners.get(&self.owner).is_some_and(|(number, _)| *number == self.number) {
            owners.remove(&self.owner);
        }
    }
}

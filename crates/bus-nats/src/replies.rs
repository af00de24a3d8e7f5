//! Answers of several messages, over one subscription of the connection. A subscription of its own
//! for each request would change the server's tables twice for each read.

#![expect(
    clippy::disallowed_types,
    reason = "held for a look or a change of the table, never over an await"
)]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_nats::{Client, Message, Subscriber};
use futures_util::StreamExt;
use tokio::sync::mpsc;

use crate::task::Task;

/// Requests that wait for answers.
pub(crate) struct Replies {
    /// What the reply subject of each begins with; a number follows.
    prefix: String,
    next: AtomicU64,
    waiting: Arc<Waiting>,
    _task: Task,
}

#[derive(Default)]
struct Waiting(Mutex<BTreeMap<u64, mpsc::Sender<Message>>>);

/// The answers to one request; they are no longer waited for when this is dropped.
pub(crate) struct Answers {
    /// Where they have to be sent.
    pub(crate) subject: String,
    messages: mpsc::Receiver<Message>,
    number: u64,
    waiting: Arc<Waiting>,
}

impl Replies {
    /// Subscribes; the subscription lives as long as this.
    pub(crate) async fn new(client: &Client) -> Result<Self, async_nats::SubscribeError> {
        let prefix = client.new_inbox();
        let messages = client.subscribe(format!("{prefix}.*")).await?;
        let waiting = Arc::<Waiting>::default();
        let task = Task::start(pass_on(messages, Arc::clone(&waiting)));
        Ok(Self { prefix, next: AtomicU64::new(0), waiting, _task: task })
    }

    /// A place for at most `most` answers. One more means that the server does not keep to what it
    /// was asked for; then none come any more.
    pub(crate) fn expect(&self, most: usize) -> Answers {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, messages) = mpsc::channel(most.max(1));
        self.waiting.lock().insert(number, sender);
        let subject = format!("{}.{number}", self.prefix);
        Answers { subject, messages, number, waiting: Arc::clone(&self.waiting) }
    }
}

impl Answers {
    /// The next one.
    pub(crate) async fn next(&mut self) -> Option<Message> {
        self.messages.recv().await
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        self.waiting.lock().remove(&self.number);
    }
}

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, mpsc::Sender<Message>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pass(&self, message: Message) {
        let number = message.subject.rsplit('.').next().and_then(|number| number.parse().ok());
        let Some(number) = number else { return };
        let mut waiting = self.lock();
        let Some(sender) = waiting.get(&number) else { return };
        if sender.try_send(message).is_err() {
            waiting.remove(&number);
        }
    }
}

async fn pass_on(mut messages: Subscriber, waiting: Arc<Waiting>) {
    while let Some(message) = messages.next().await {
        waiting.pass(message);
    }
}

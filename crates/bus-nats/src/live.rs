//! Unstored messages over plain subjects, and questions to a process by its name.

use std::time::Duration;

use async_nats::client::RequestErrorKind;
use async_nats::{Client, HeaderMap, Request, Subscriber};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use ports::BusError;
use ports::live::{Answering, Holds, Live, OwnerAnswer, Subscription, Topic};
use proto::ids::{InstanceId, Partition, TenantId, ThreadRef};
use proto::live::HeldQuestion;
use proto::subject::{control_subject, live_subject};
use tokio::sync::broadcast;

use crate::connect::NatsBus;
use crate::task::Task;

/// Says which stream the thread of a hint lives on.
const PARTITION: &str = "Sy-Partition";
const HOLDING: &[u8] = b"holding";
const NOT_HOLDING: &[u8] = b"not holding";

/// Messages that a slow reader may be behind.
const BEHIND: usize = 1024;

/// The client drops the newest message when a reader is slow; readers of live text need the newest,
/// so a task takes messages at once and lets the oldest go.
struct NatsSubscription {
    messages: broadcast::Receiver<(ThreadRef, Bytes)>,
    _task: Task,
}

#[async_trait]
impl Subscription for NatsSubscription {
    async fn next(&mut self) -> Option<(ThreadRef, Bytes)> {
        loop {
            match self.messages.recv().await {
                Ok(message) => return Some(message),
                Err(broadcast::error::RecvError::Lagged(lost)) => {
                    tracing::debug!(lost, "a reader of live messages is too slow");
                }
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}

async fn forward(mut messages: Subscriber, readers: broadcast::Sender<(ThreadRef, Bytes)>) {
    while let Some(message) = messages.next().await {
        if let Some(thread) = thread_of(&message)
            && readers.send((thread, message.payload)).is_err()
        {
            return;
        }
    }
}

/// `sylive.<tenant>.<thread>` with the partition in a header.
fn thread_of(message: &async_nats::Message) -> Option<ThreadRef> {
    let mut parts = message.subject.as_str().split('.').skip(1);
    let tenant = TenantId::new(parts.next()?).ok()?;
    let thread = parts.next()?.parse().ok()?;
    let partition = crate::api::header(message, PARTITION)?.parse().ok()?;
    Some(ThreadRef { partition: Partition(partition), tenant, thread })
}

struct NatsAnswering {
    _task: Task,
}

impl Answering for NatsAnswering {}

async fn answer_all(client: Client, mut questions: Subscriber, holds: Holds) {
    while let Some(question) = questions.next().await {
        let held = serde_json::from_slice::<HeldQuestion>(&question.payload);
        let holding = held.is_ok_and(|question| holds(&question));
        let word = if holding { HOLDING } else { NOT_HOLDING };
        let Some(reply) = question.reply else { continue };
        if let Err(error) = client.publish(reply, Bytes::from_static(word)).await {
            tracing::debug!(%error, "a question was not answered");
        }
    }
}

fn unavailable(error: impl std::fmt::Display) -> BusError {
    BusError::Unavailable(error.to_string())
}

fn ask_subject(owner: &InstanceId) -> String {
    format!("syask.{owner}")
}

/// How long the server may take to say that nobody listens.
const KNOWN: Duration = Duration::from_secs(5);

impl NatsBus {
    /// What is said from here on must be heard, so the server has to know of the subscription; a
    /// flush only hands it to the socket. A server reads a connection in order: when it has said
    /// that nobody answers to a name, it knows what came before.
    async fn be_known(&self) -> Result<(), BusError> {
        let request = Request::new().timeout(Some(KNOWN));
        match self.client.send_request("syask.nobody", request).await {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == RequestErrorKind::NoResponders => Ok(()),
            Err(error) => Err(unavailable(error)),
        }
    }
}

#[async_trait]
impl Live for NatsBus {
    async fn publish(&self, topic: &Topic, message: Bytes) -> Result<(), BusError> {
        let (subject, thread) = match topic {
            Topic::Text(thread) => (live_subject(thread), thread),
            Topic::Control(thread) => (control_subject(thread), thread),
            Topic::AllControl => {
                return Err(BusError::Refused("a hint belongs to one thread".to_owned()));
            }
        };
        let mut headers = HeaderMap::new();
        headers.insert(PARTITION, thread.partition.0.to_string());
        self.client.publish_with_headers(subject, headers, message).await.map_err(unavailable)
    }

    async fn subscribe(&self, topic: &Topic) -> Result<Box<dyn Subscription>, BusError> {
        let subject = match topic {
            Topic::Text(thread) => live_subject(thread),
            Topic::Control(thread) => control_subject(thread),
            Topic::AllControl => "syctl.*.*".to_owned(),
        };
        let messages = self.client.subscribe(subject).await.map_err(unavailable)?;
        self.be_known().await?;
        let (readers, heard) = broadcast::channel(BEHIND);
        let task = Task::start(forward(messages, readers));
        Ok(Box::new(NatsSubscription { messages: heard, _task: task }))
    }

    async fn answer(&self, me: &InstanceId, holds: Holds) -> Result<Box<dyn Answering>, BusError> {
        let questions = self.client.subscribe(ask_subject(me)).await.map_err(unavailable)?;
        self.be_known().await?;
        let task = Task::start(answer_all(self.client.clone(), questions, holds));
        Ok(Box::new(NatsAnswering { _task: task }))
    }

    async fn ask(
        &self,
        owner: &InstanceId,
        question: &HeldQuestion,
        patience: Duration,
    ) -> Result<OwnerAnswer, BusError> {
        let payload = Bytes::from(serde_json::to_vec(question).unwrap_or_default());
        let request = Request::new().payload(payload).timeout(Some(patience));
        match self.client.send_request(ask_subject(owner), request).await {
            Ok(answer) if answer.payload.as_ref() == HOLDING => Ok(OwnerAnswer::Holding),
            Ok(_) => Ok(OwnerAnswer::NotHolding),
            Err(error) => match error.kind() {
                RequestErrorKind::NoResponders => Ok(OwnerAnswer::NoResponder),
                RequestErrorKind::TimedOut => Ok(OwnerAnswer::Silent),
                RequestErrorKind::InvalidSubject
                | RequestErrorKind::MaxPayloadExceeded
                | RequestErrorKind::Other => Err(unavailable(error)),
            },
        }
    }
}

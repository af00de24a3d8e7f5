//! Deliveries: one pull request at a time per caller, each with its own deadline, so that a silent
//! consumer is noticed with the next pull and made anew.

use std::time::Duration;

use async_nats::{Message, StatusCode, Subscriber};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use ports::BusError;
use ports::journal::Stored;
use ports::queues::{Delivery, DeliveryToken, Queue, Queues};
use proto::ids::Sequence;
use proto::time::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::connect::NatsBus;
use crate::layout::{consumer_name, ensure_consumer, partition_of, stream_name};

/// The longest that one pull request may be open: a request of a dead process is forgotten by then.
const LONGEST_PULL: Duration = Duration::from_secs(2);
/// The shortest that is worth a request.
const SHORTEST_PULL: Duration = Duration::from_millis(10);
/// How much later than its expiry the end of a pull may come.
const SLACK: Duration = Duration::from_millis(750);
/// How long an answer to a pull that does not wait may take.
const AT_ONCE: Duration = Duration::from_secs(2);

/// How a pull request ended without a delivery.
enum NoDelivery {
    Nothing,
    Gone,
    Silent,
}

#[async_trait]
impl Queues for NatsBus {
    fn ack_wait(&self) -> Duration {
        self.settings.ack_wait
    }

    async fn pull(
        &self,
        queue: &Queue,
        max: usize,
        wait: Duration,
    ) -> Result<Vec<Delivery>, BusError> {
        if max == 0 {
            return Ok(Vec::new());
        }
        let deadline = Instant::now().checked_add(wait).unwrap_or_else(Instant::now);
        loop {
            let deliveries = self.pull_once(queue, max, deadline).await?;
            if !deliveries.is_empty() || Instant::now() >= deadline {
                return Ok(deliveries);
            }
        }
    }

    async fn ack(&self, token: &DeliveryToken) -> Result<(), BusError> {
        self.answer(token, Bytes::from_static(b"+ACK")).await
    }

    async fn nak(&self, token: &DeliveryToken, delay: Duration) -> Result<(), BusError> {
        let nanos = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        let body = if delay.is_zero() {
            Bytes::from_static(b"-NAK")
        } else {
            Bytes::from(format!("-NAK {}", json!({ "delay": nanos })))
        };
        self.answer(token, body).await
    }

    async fn progress(&self, tokens: &[DeliveryToken]) -> Result<(), BusError> {
        for token in tokens {
            self.answer(token, Bytes::from_static(b"+WPI")).await?;
        }
        Ok(())
    }
}

impl NatsBus {
    /// What is there, or the next one that comes while one pull request is open.
    async fn pull_once(
        &self,
        queue: &Queue,
        max: usize,
        deadline: Instant,
    ) -> Result<Vec<Delivery>, BusError> {
        ensure_consumer(self, queue).await?;
        let there = json!({ "batch": max, "no_wait": true });
        if let Ok(deliveries) = self.request_pull(queue, &there, max, AT_ONCE).await? {
            return Ok(deliveries);
        }
        // A request for one: what more there is comes with the next pull, and nothing that this
        // caller no longer waits for can get stuck.
        let left = deadline.saturating_duration_since(Instant::now());
        let wait = left.clamp(SHORTEST_PULL, LONGEST_PULL);
        let nanos = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
        let next = json!({ "batch": 1, "expires": nanos });
        match self.request_pull(queue, &next, 1, wait.saturating_add(SLACK)).await? {
            Ok(deliveries) => Ok(deliveries),
            Err(NoDelivery::Nothing) => Ok(Vec::new()),
            Err(NoDelivery::Gone | NoDelivery::Silent) => {
                tracing::warn!(?queue, "the consumer is gone or silent; making sure of it");
                self.known.forget(queue).await;
                Ok(Vec::new())
            }
        }
    }

    async fn answer(&self, token: &DeliveryToken, body: Bytes) -> Result<(), BusError> {
        let told = self.client.publish(token.0.clone(), body).await;
        told.map_err(|error| BusError::Unavailable(error.to_string()))
    }

    async fn request_pull(
        &self,
        queue: &Queue,
        request: &Value,
        max: usize,
        patience: Duration,
    ) -> Result<Result<Vec<Delivery>, NoDelivery>, BusError> {
        let unavailable = |error: &dyn std::fmt::Display| BusError::Unavailable(error.to_string());
        let stream = stream_name(partition_of(queue));
        let subject = format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.{}", consumer_name(queue));
        let inbox = self.client.new_inbox();
        let mut lost = self.lost.clone();
        lost.mark_unchanged();
        let mut answers =
            self.client.subscribe(inbox.clone()).await.map_err(|error| unavailable(&error))?;
        let payload = Bytes::from(request.to_string());
        self.client
            .publish_with_reply(subject, inbox, payload)
            .await
            .map_err(|error| unavailable(&error))?;
        let collected = tokio::select! {
            biased;
            collected = self.collect(&mut answers, max) => collected,
            // The request died with the connection it was sent on.
            _ = lost.changed() => Err(NoDelivery::Nothing),
            () = tokio::time::sleep(patience) => Err(NoDelivery::Silent),
        };
        Ok(collected)
    }

    /// Deliveries until the server says that there are no more, or `max` have come.
    async fn collect(
        &self,
        answers: &mut Subscriber,
        max: usize,
    ) -> Result<Vec<Delivery>, NoDelivery> {
        let (mut deliveries, mut came) = (Vec::new(), 0_usize);
        while let Some(message) = answers.next().await {
            match message.status {
                None | Some(StatusCode::OK) => {
                    match delivery_of(message) {
                        Ok(delivery) => deliveries.push(delivery),
                        Err(stray) => self.set_aside(&stray).await,
                    }
                    came = came.saturating_add(1);
                    if came >= max {
                        return Ok(deliveries);
                    }
                }
                Some(StatusCode::IDLE_HEARTBEAT) => {}
                Some(_) if came > 0 => return Ok(deliveries),
                Some(StatusCode::NO_RESPONDERS) => return Err(NoDelivery::Gone),
                Some(status) => return Err(ended(status, message.description.as_deref())),
            }
        }
        Err(NoDelivery::Silent)
    }

    /// A message that is of no thread is no process's to work on: no `parked` record can name it, so
    /// it is told to operators and never delivered again.
    async fn set_aside(&self, stray: &Message) {
        let subject = stray.subject.as_str();
        tracing::error!(
            subject,
            "a message of no thread was set aside; who writes to this stream?"
        );
        let Some(reply) = stray.reply.clone() else { return };
        if let Err(error) = self.client.publish(reply, Bytes::from_static(b"+TERM")).await {
            tracing::debug!(%error, "it was not set aside; it comes again");
        }
    }
}

fn ended(status: StatusCode, description: Option<&str>) -> NoDelivery {
    let text = description.unwrap_or_default().to_ascii_lowercase();
    let deleted = text.contains("deleted") || text.contains("not found");
    if status.as_u16() == 409 && deleted { NoDelivery::Gone } else { NoDelivery::Nothing }
}

/// The message itself when it is no delivery of a thread's record.
fn delivery_of(message: Message) -> Result<Delivery, Box<Message>> {
    let token = message.reply.as_ref().map(ToString::to_string).unwrap_or_default();
    let (Some(ack), Ok(subject)) = (Ack::parse(&token), message.subject.as_str().parse()) else {
        return Err(Box::new(message));
    };
    let stored = Stored { sequence: ack.sequence, subject, at: ack.at, payload: message.payload };
    Ok(Delivery { stored, token: DeliveryToken(token), count: ack.count })
}

/// What the reply subject of a delivery tells.
struct Ack {
    count: u64,
    sequence: Sequence,
    at: Timestamp,
}

impl Ack {
    /// `$JS.ACK.<stream>.<consumer>.<count>.<stream seq>.<consumer seq>.<nanos>.<pending>`, or the
    /// longer form with domain and account hash behind `ACK` and a token at the end.
    fn parse(subject: &str) -> Option<Self> {
        let parts: Vec<&str> = subject.split('.').collect();
        let at: usize = if parts.len() >= 11 { 6 } else { 4 };
        let number = |index: usize| parts.get(index)?.parse::<u64>().ok();
        let nanos = number(at.checked_add(3)?)?;
        Some(Self {
            count: number(at)?,
            sequence: Sequence(number(at.checked_add(1)?)?),
            at: Timestamp(i64::try_from(nanos / 1_000_000).ok()?),
        })
    }
}

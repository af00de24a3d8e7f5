//! A bare exchange over JetStream, for measuring: what the product on the same servers is compared
//! with. One side publishes calls and is told of answers, the other takes calls and publishes
//! answers; every message is stored and acknowledged, and nothing else is done with it.

use std::time::Duration;

use async_nats::jetstream::{self, consumer, stream};
use async_nats::{Client, ConnectOptions};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use ports::BusError;
use tokio::sync::mpsc;

/// Messages that one side works on at once.
const AT_ONCE: usize = 256;
/// Stored messages that wait for whoever takes them.
const WAITING: usize = 4096;
/// The deadline of one request.
const REQUEST: Duration = Duration::from_secs(5);

/// One side of the exchange.
#[derive(Clone)]
pub struct Bare {
    client: Client,
    partitions: u16,
}

impl Bare {
    /// Connects, and creates a stream for each partition.
    pub async fn open(server: &str, partitions: u16) -> Result<Self, BusError> {
        let options = ConnectOptions::new().request_timeout(Some(REQUEST));
        let client = options.connect(server).await.map_err(unavailable)?;
        let bare = Self { client, partitions };
        for partition in 0..partitions {
            let config = stream::Config {
                name: format!("BARE_{partition}"),
                subjects: vec![format!("bare.{partition}.>")],
                storage: stream::StorageType::File,
                ..stream::Config::default()
            };
            bare.context().get_or_create_stream(config).await.map_err(unavailable)?;
        }
        Ok(bare)
    }

    fn context(&self) -> jetstream::Context {
        let mut context = jetstream::new(self.client.clone());
        context.set_timeout(REQUEST);
        context
    }

    /// Stores a call of a run.
    pub async fn call(&self, run: u64, number: usize, payload: Bytes) -> Result<(), BusError> {
        let partition = run.checked_rem(u64::from(self.partitions)).unwrap_or(0);
        self.publish(format!("bare.{partition}.call.{run}.{number}"), payload).await
    }

    async fn publish(&self, subject: String, payload: Bytes) -> Result<(), BusError> {
        let answer = self.client.request(subject, payload).await.map_err(unavailable)?;
        if answer.payload.windows(7).any(|part| part == b"\"error\"") {
            return Err(BusError::Refused(String::from_utf8_lossy(&answer.payload).into_owned()));
        }
        Ok(())
    }

    /// Answers calls for as long as it is polled.
    pub async fn serve(&self, payload: Bytes) -> Result<(), BusError> {
        let payload = &payload;
        let served = (0..self.partitions).map(|partition| async move {
            let messages = self.messages(partition, "call").await?.map_err(unavailable);
            messages
                .try_for_each_concurrent(AT_ONCE, |message| self.answer(message, payload.clone()))
                .await
        });
        futures_util::future::try_join_all(served).await.map(drop)
    }

    async fn answer(&self, call: jetstream::Message, payload: Bytes) -> Result<(), BusError> {
        self.publish(call.subject.replacen(".call.", ".answer.", 1), payload).await?;
        call.ack().await.map_err(unavailable)
    }

    /// Tells the runs whose calls were answered, one by one, for as long as it is polled.
    pub async fn hear(&self, told: mpsc::Sender<u64>) -> Result<(), BusError> {
        let heard = (0..self.partitions).map(|partition| {
            let told = told.clone();
            async move {
                let mut messages = self.messages(partition, "answer").await?;
                while let Some(message) = messages.next().await.transpose().map_err(unavailable)? {
                    let run = message.subject.split('.').nth(3).and_then(|run| run.parse().ok());
                    message.ack().await.map_err(unavailable)?;
                    // Whoever listened may be gone.
                    told.send(run.unwrap_or(0)).await.unwrap_or_default();
                }
                Ok(())
            }
        });
        futures_util::future::try_join_all(heard).await.map(drop)
    }

    async fn messages(
        &self,
        partition: u16,
        kind: &str,
    ) -> Result<consumer::pull::Stream, BusError> {
        let pending = i64::try_from(WAITING).unwrap_or(i64::MAX);
        let config = consumer::pull::Config {
            durable_name: Some(kind.to_owned()),
            filter_subject: format!("bare.{partition}.{kind}.>"),
            ack_policy: consumer::AckPolicy::Explicit,
            max_ack_pending: pending,
            ..consumer::pull::Config::default()
        };
        let stream = format!("BARE_{partition}");
        let consumer: consumer::PullConsumer =
            self.context().create_consumer_on_stream(config, stream).await.map_err(unavailable)?;
        consumer.stream().max_messages_per_batch(AT_ONCE).messages().await.map_err(unavailable)
    }
}

fn unavailable(error: impl std::fmt::Display) -> BusError {
    BusError::Unavailable(error.to_string())
}

//! Records as they are stored, for whoever only looks: nothing is acknowledged, and a reader that
//! comes later misses what came before.

use async_nats::jetstream::consumer;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};
use ports::BusError;
use proto::ids::Partition;
use proto::subject::Subject;

use crate::connect::NatsBus;
use crate::layout::{context, stream_name};

/// A stored record.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Where.
    pub subject: Subject,
    /// When it was stored, in server time: microseconds since the Unix epoch.
    pub micros: i64,
    /// The encoded envelope.
    pub payload: bytes::Bytes,
}

impl NatsBus {
    /// Records of all threads from now on, in the order of each partition, whose subjects end like
    /// one of `leaves`: `plan.fact`, `obs`, `plan.tool_call.*`, `in`.
    pub async fn watch(
        &self,
        leaves: &[&str],
    ) -> Result<BoxStream<'static, Result<Seen, BusError>>, BusError> {
        let mut watched = Vec::new();
        for partition in 0..self.settings.partitions {
            watched.push(self.watch_one(Partition(partition), leaves).await?);
        }
        Ok(stream::select_all(watched).boxed())
    }

    async fn watch_one(
        &self,
        partition: Partition,
        leaves: &[&str],
    ) -> Result<BoxStream<'static, Result<Seen, BusError>>, BusError> {
        let filters = leaves.iter().map(|leaf| format!("sy.{}.*.*.{leaf}", partition.0));
        let config = consumer::pull::OrderedConfig {
            filter_subjects: filters.collect(),
            deliver_policy: consumer::DeliverPolicy::New,
            ..consumer::pull::OrderedConfig::default()
        };
        let stream = context(self).get_stream(stream_name(partition)).await.map_err(unavailable)?;
        let consumer = stream.create_consumer(config).await.map_err(unavailable)?;
        let messages = consumer.messages().await.map_err(unavailable)?;
        let seen = messages.map_err(unavailable).try_filter_map(|message| async move {
            let published = message.info().map_err(|error| BusError::Refused(error.to_string()))?;
            let micros = published.published.unix_timestamp_nanos() / 1000;
            let Ok(subject) = message.subject.parse() else { return Ok(None) };
            let micros = i64::try_from(micros).unwrap_or(i64::MAX);
            Ok(Some(Seen { subject, micros, payload: message.message.payload.clone() }))
        });
        Ok(seen.boxed())
    }
}

fn unavailable(error: impl std::fmt::Display) -> BusError {
    BusError::Unavailable(error.to_string())
}

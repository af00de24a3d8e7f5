//! Streams, consumers and buckets: what exists on the server for us.
//!
//! Creating is idempotent, also when many processes start at once. A stream that differs in a
//! setting that keeps records (discard, limits, storage) is refused; others are migrated.

use std::collections::BTreeSet;
use std::time::Duration;

use async_nats::jetstream::{self, consumer, kv, object_store, stream};
use ports::BusError;
use ports::journal::Journal;
use ports::queues::Queue;
use proto::ids::Partition;
use proto::time::Timestamp;
use tokio::sync::Mutex;

use crate::connect::NatsBus;
use crate::refusal::ConnectError;

/// The bucket of tool registrations.
pub(crate) const TOOLS_BUCKET: &str = "SY_TOOLS";
/// The bucket of what operators hold back.
pub(crate) const FREEZES_BUCKET: &str = "SY_FREEZES";
/// The bucket of artifacts.
pub(crate) const ARTIFACTS_BUCKET: &str = "SY_ARTIFACTS";

/// What this process knows to exist.
#[derive(Default)]
pub(crate) struct Known {
    consumers: Mutex<BTreeSet<Queue>>,
}

impl Known {
    /// Forgets a consumer that turned out to be gone.
    pub(crate) async fn forget(&self, queue: &Queue) {
        self.consumers.lock().await.remove(queue);
    }
}

/// The stream of a partition.
pub(crate) fn stream_name(partition: Partition) -> String {
    format!("SY_{}", partition.0)
}

/// The durable consumer of a queue.
pub(crate) fn consumer_name(queue: &Queue) -> String {
    match queue {
        Queue::Inbox(_) => "planner_in".to_owned(),
        Queue::Progress(_) => "planner_progress".to_owned(),
        Queue::Tool(_, tool) => format!("tool_{tool}"),
    }
}

/// The partition of a queue.
pub(crate) fn partition_of(queue: &Queue) -> Partition {
    match queue {
        Queue::Inbox(partition) | Queue::Progress(partition) | Queue::Tool(partition, _) => {
            *partition
        }
    }
}

/// Creates what is missing and migrates what is old.
pub(crate) async fn ensure(bus: &NatsBus) -> Result<(), ConnectError> {
    let context = context(bus);
    for partition in 0..bus.settings.partitions {
        ensure_stream(bus, &context, Partition(partition)).await?;
    }
    Ok(ensure_buckets(bus, &context).await?)
}

pub(crate) fn context(bus: &NatsBus) -> jetstream::Context {
    let mut context = jetstream::new(bus.client.clone());
    context.set_timeout(bus.settings.request);
    context
}

fn stream_config(bus: &NatsBus, partition: Partition) -> stream::Config {
    stream::Config {
        name: stream_name(partition),
        description: Some("Systole: the records of threads".to_owned()),
        subjects: vec![format!("sy.{}.>", partition.0)],
        storage: stream::StorageType::File,
        retention: stream::RetentionPolicy::Limits,
        // Schedules are refused beside discard new. Without any limit nothing is ever discarded.
        discard: stream::DiscardPolicy::Old,
        max_messages: -1,
        max_bytes: -1,
        max_messages_per_subject: -1,
        max_consumers: -1,
        max_message_size: -1,
        max_age: Duration::ZERO,
        num_replicas: bus.settings.replicas,
        duplicate_window: Duration::from_mins(2),
        allow_direct: true,
        allow_message_schedules: true,
        allow_message_ttl: true,
        allow_rollup: true,
        ..stream::Config::default()
    }
}

async fn ensure_stream(
    bus: &NatsBus,
    context: &jetstream::Context,
    partition: Partition,
) -> Result<(), ConnectError> {
    let wanted = stream_config(bus, partition);
    let existing = match context.get_stream(&wanted.name).await {
        Ok(stream) => stream.cached_info().config.clone(),
        Err(_) => match context.create_stream(wanted.clone()).await {
            Ok(stream) => stream.cached_info().config.clone(),
            Err(error) => context
                .get_stream(&wanted.name)
                .await
                .map(|stream| stream.cached_info().config.clone())
                .map_err(|_absent| no_stream(&wanted.name, &error.to_string()))?,
        },
    };
    refuse_foreign(&wanted, &existing)?;
    if is_current(&wanted, &existing) {
        return Ok(());
    }
    context
        .update_stream(wanted.clone())
        .await
        .map(|_| ())
        .map_err(|error| no_stream(&wanted.name, &error.to_string()))
}

fn no_stream(name: &str, why: &str) -> ConnectError {
    BusError::Refused(format!("stream {name} cannot be created: {why}")).into()
}

/// A stream that could lose records must not be used.
fn refuse_foreign(wanted: &stream::Config, existing: &stream::Config) -> Result<(), ConnectError> {
    let mut wrong = Vec::new();
    if existing.subjects != wanted.subjects {
        wrong.push(format!("subjects {:?}", existing.subjects));
    }
    if existing.storage != wanted.storage {
        wrong.push("storage is not file".to_owned());
    }
    if existing.retention != wanted.retention {
        wrong.push("retention is not by limits".to_owned());
    }
    if existing.max_messages > 0 || existing.max_bytes > 0 || !existing.max_age.is_zero() {
        wrong.push("it has a limit that discards records".to_owned());
    }
    if existing.max_messages_per_subject > 0 {
        wrong.push("it keeps a limited number of records per subject".to_owned());
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(ConnectError::StreamMismatch { stream: wanted.name.clone(), what: wrong.join("; ") })
}

fn is_current(wanted: &stream::Config, existing: &stream::Config) -> bool {
    existing.allow_direct == wanted.allow_direct
        && existing.allow_message_schedules == wanted.allow_message_schedules
        && existing.allow_message_ttl == wanted.allow_message_ttl
        && existing.num_replicas == wanted.num_replicas
        && existing.duplicate_window == wanted.duplicate_window
}

async fn ensure_buckets(bus: &NatsBus, context: &jetstream::Context) -> Result<(), BusError> {
    let tools = kv::Config {
        bucket: TOOLS_BUCKET.to_owned(),
        description: "Systole: tools on offer".to_owned(),
        history: 1,
        max_age: bus.settings.offer_ttl,
        num_replicas: bus.settings.replicas,
        ..kv::Config::default()
    };
    ensure_entries(context, tools).await?;
    let freezes = kv::Config {
        bucket: FREEZES_BUCKET.to_owned(),
        description: "Systole: what operators hold back".to_owned(),
        history: 1,
        num_replicas: bus.settings.replicas,
        ..kv::Config::default()
    };
    ensure_entries(context, freezes).await?;
    let artifacts = object_store::Config {
        bucket: ARTIFACTS_BUCKET.to_owned(),
        description: Some("Systole: payloads kept outside messages".to_owned()),
        num_replicas: bus.settings.replicas,
        ..object_store::Config::default()
    };
    if context.get_object_store(ARTIFACTS_BUCKET).await.is_err()
        && let Err(error) = context.create_object_store(artifacts).await
        && context.get_object_store(ARTIFACTS_BUCKET).await.is_err()
    {
        return Err(BusError::Refused(format!("bucket {ARTIFACTS_BUCKET}: {error}")));
    }
    for stream in [
        format!("KV_{TOOLS_BUCKET}"),
        format!("KV_{FREEZES_BUCKET}"),
        format!("OBJ_{ARTIFACTS_BUCKET}"),
    ] {
        ensure_copies(bus, context, &stream).await?;
    }
    Ok(())
}

/// A bucket that was created with fewer copies, or more, follows the settings as the streams do.
async fn ensure_copies(
    bus: &NatsBus,
    context: &jetstream::Context,
    stream: &str,
) -> Result<(), BusError> {
    let refused = |error: &dyn std::fmt::Display| BusError::Refused(format!("{stream}: {error}"));
    let found = context.get_stream(stream).await.map_err(|error| refused(&error))?;
    let existing = &found.cached_info().config;
    if existing.num_replicas == bus.settings.replicas {
        return Ok(());
    }
    let num_replicas = bus.settings.replicas;
    let wanted = stream::Config { num_replicas, ..existing.clone() };
    context.update_stream(wanted).await.map(drop).map_err(|error| refused(&error))
}

async fn ensure_entries(context: &jetstream::Context, config: kv::Config) -> Result<(), BusError> {
    let bucket = config.bucket.clone();
    if context.get_key_value(&bucket).await.is_err()
        && let Err(error) = context.create_key_value(config).await
        && context.get_key_value(&bucket).await.is_err()
    {
        return Err(BusError::Refused(format!("bucket {bucket}: {error}")));
    }
    Ok(())
}

/// Makes sure that a queue's consumer exists and is kept as this process's settings say.
pub(crate) async fn ensure_consumer(bus: &NatsBus, queue: &Queue) -> Result<(), BusError> {
    let mut known = bus.known.consumers.lock().await;
    if known.contains(queue) {
        return Ok(());
    }
    let context = context(bus);
    if !is_migrated(bus, &context, queue).await? {
        create_consumer(bus, &context, queue).await?;
    }
    known.insert(queue.clone());
    Ok(())
}

/// Gives a consumer that is there the settings of this process; answers whether it is there.
async fn is_migrated(
    bus: &NatsBus,
    context: &jetstream::Context,
    queue: &Queue,
) -> Result<bool, BusError> {
    let (name, stream) = (consumer_name(queue), stream_name(partition_of(queue)));
    let found =
        context.get_consumer_from_stream::<consumer::pull::Config, _, _>(&name, &stream).await;
    // One that cannot be looked at is created, which finds out more.
    let Ok(found) = found else { return Ok(false) };
    let existing = &found.cached_info().config;
    let wanted = consumer_config(bus, queue, consumer::DeliverPolicy::All);
    let is_current = existing.ack_wait == wanted.ack_wait
        && existing.max_ack_pending == wanted.max_ack_pending
        && existing.max_deliver == wanted.max_deliver
        && existing.inactive_threshold == wanted.inactive_threshold;
    if is_current {
        return Ok(true);
    }
    // Where it began to deliver cannot be changed, and is right as it is.
    let migrated = consumer::pull::Config {
        deliver_policy: existing.deliver_policy,
        max_waiting: existing.max_waiting,
        ..wanted
    };
    if let Err(error) = context.create_consumer_on_stream(migrated, &stream).await {
        tracing::warn!(%error, name, "the consumer keeps its older settings");
    }
    Ok(true)
}

async fn create_consumer(
    bus: &NatsBus,
    context: &jetstream::Context,
    queue: &Queue,
) -> Result<(), BusError> {
    let (name, stream) = (consumer_name(queue), stream_name(partition_of(queue)));
    let config = consumer_config(bus, queue, deliver_policy(bus, queue).await?);
    let made = context.create_consumer_on_stream(config, &stream).await;
    if let Err(error) = made {
        // Another process may have been first, with another start.
        let exists = context
            .get_consumer_from_stream::<consumer::pull::Config, _, _>(&name, &stream)
            .await
            .is_ok();
        if !exists {
            return Err(BusError::Unavailable(format!("consumer {name}: {error}")));
        }
    }
    Ok(())
}

fn consumer_config(
    bus: &NatsBus,
    queue: &Queue,
    deliver_policy: consumer::DeliverPolicy,
) -> consumer::pull::Config {
    let part = partition_of(queue).0;
    let filters = match queue {
        Queue::Inbox(_) => vec![format!("sy.{part}.*.*.in")],
        Queue::Progress(_) => vec![format!("sy.{part}.*.*.obs"), format!("sy.{part}.*.*.tick")],
        Queue::Tool(_, tool) => vec![format!("sy.{part}.*.*.plan.tool_call.{tool}")],
    };
    let name = consumer_name(queue);
    consumer::pull::Config {
        durable_name: Some(name),
        filter_subjects: filters,
        ack_policy: consumer::AckPolicy::Explicit,
        ack_wait: bus.settings.ack_wait,
        max_deliver: -1,
        max_ack_pending: bus.settings.max_ack_pending,
        max_waiting: 16_384,
        deliver_policy,
        replay_policy: consumer::ReplayPolicy::Instant,
        ..consumer::pull::Config::default()
    }
}

/// Calls older than the longest `start_by` may not start any more, so a new tool's consumer need
/// not see them; planners need every input and observation. The server's time counts: a process
/// whose clock is ahead would pass over calls that wait.
async fn deliver_policy(bus: &NatsBus, queue: &Queue) -> Result<consumer::DeliverPolicy, BusError> {
    Ok(match queue {
        Queue::Inbox(_) | Queue::Progress(_) => consumer::DeliverPolicy::All,
        Queue::Tool(..) => {
            let now = bus.server_time().await?;
            let since = now.before(bus.settings.longest_start_by);
            consumer::DeliverPolicy::ByStartTime { start_time: date_time(since) }
        }
    })
}

fn date_time(at: Timestamp) -> async_nats::datetime::DateTime {
    let since_epoch = Duration::from_millis(u64::try_from(at.0).unwrap_or(0));
    std::time::UNIX_EPOCH.checked_add(since_epoch).unwrap_or(std::time::UNIX_EPOCH).into()
}

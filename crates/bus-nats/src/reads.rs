//! Reads: from any replica in one batch, and from the leader where a stale answer would be wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use async_nats::{Message, StatusCode};
use bytes::Bytes;
use futures_util::future::try_join_all;
use ports::BusError;
use ports::feed::MOST_RECORDS;
use ports::journal::Stored;
use proto::ids::{Partition, Sequence, ThreadRef};
use proto::subject::{Leaf, Subject, thread_prefix};
use proto::time::Timestamp;
use serde_json::{Value, json};

use crate::api::{NO_MESSAGE, ask, header, request};
use crate::connect::NatsBus;
use crate::layout::stream_name;

/// Tries at replicas before the leader is read record by record.
const TRIES: u32 = 6;
/// Pause before the second try; doubles.
const PAUSE: Duration = Duration::from_millis(2);
/// Records asked for one by one; more of them are cheaper as a batch.
const STEPS: usize = 16;
/// Records asked for in one batch.
const BATCH: u64 = 1000;

/// A message as the leader gives it.
pub(crate) struct Found {
    pub(crate) stored: Stored,
    headers: String,
}

impl Found {
    /// A header's text.
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let lines = self.headers.lines().filter_map(|line| line.split_once(':'));
        lines
            .filter(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim().to_owned())
            .next()
    }
}

/// The thread's records from `from` on, containing `floor`.
pub(crate) async fn read(
    bus: &NatsBus,
    thread: &ThreadRef,
    from: Sequence,
    floor: Sequence,
) -> Result<Vec<Stored>, BusError> {
    let mut pause = PAUSE;
    for _ in 0..TRIES {
        let records = if floor > from {
            steps(bus, thread, from, floor).await?
        } else {
            batches(bus, thread, from).await?
        };
        if reaches(&records, floor) || !is_at_leader(bus, thread.partition, floor).await? {
            if let Some(last) = records.last() {
                bus.recent.note_read(thread, last.sequence);
            }
            return Ok(records);
        }
        tokio::time::sleep(pause).await;
        pause = pause.saturating_mul(2);
    }
    one_by_one(bus, thread, from).await
}

/// Whether the records come up to the floor. What lies above it proves that the replica is not
/// behind it, also when the floor itself is a schedule or was purged.
fn reaches(records: &[Stored], floor: Sequence) -> bool {
    floor == Sequence::NONE || records.last().is_some_and(|last| last.sequence >= floor)
}

/// Whether the leader still has the record; one that was purged or lost counts as read.
async fn is_at_leader(
    bus: &NatsBus,
    partition: Partition,
    floor: Sequence,
) -> Result<bool, BusError> {
    let found = from_leader(bus, partition, &json!({ "seq": floor.0 })).await?;
    Ok(found.is_some_and(|found| found.stored.subject.leaf != Leaf::Schedule))
}

/// Everything from `from` to `floor`, record by record. For a batch the server counts what is left,
/// which takes it longer than all the rest; where few records are wanted each is asked for alone. The
/// first one, and those behind records that this process knows, are asked for together. A replica that is
/// behind lacks the newest records and none in between, so the answers of several fit together.
async fn steps(
    bus: &NatsBus,
    thread: &ThreadRef,
    from: Sequence,
    floor: Sequence,
) -> Result<Vec<Stored>, BusError> {
    let known = bus.recent.between(thread, from, floor);
    // From its beginning a thread is one record long or worth a batch.
    let most = if from == Sequence::NONE { 1 } else { STEPS };
    let first = Sequence(from.0.max(1));
    let behind = known.into_iter().map(Sequence::next);
    let places: BTreeSet<Sequence> = [first].into_iter().chain(behind).collect();
    let asked = places.into_iter().map(|place| async move {
        Ok::<_, BusError>((place, next_record(bus, thread, place).await?))
    });
    let mut there: BTreeMap<_, _> = try_join_all(asked).await?.into_iter().collect();
    let (mut records, mut next) = (Vec::new(), first);
    for _ in 0..most {
        let found = match there.remove(&next) {
            Some(found) => found,
            None => next_record(bus, thread, next).await?,
        };
        let Some(Next { sequence, stored }) = found else { return Ok(records) };
        next = sequence.next();
        records.extend(stored.filter(|stored| stored.subject.leaf != Leaf::Schedule));
        if sequence >= floor {
            return Ok(records);
        }
    }
    records.extend(batches(bus, thread, next).await?);
    Ok(records)
}

/// A record that lies there.
struct Next {
    sequence: Sequence,
    /// `None` where its subject is of no kind that is known here.
    stored: Option<Stored>,
}

/// The first record at `place` or behind it.
async fn next_record(
    bus: &NatsBus,
    thread: &ThreadRef,
    place: Sequence,
) -> Result<Option<Next>, BusError> {
    let filter = format!("{}.>", thread_prefix(thread));
    let query = json!({ "seq": place.0, "next_by_subj": filter });
    let subject = format!("$JS.API.DIRECT.GET.{}", stream_name(thread.partition));
    let message = request(bus, subject, None, Bytes::from(query.to_string())).await?;
    match message.status {
        None | Some(StatusCode::OK) => {
            let number = header(&message, "Nats-Sequence").and_then(|number| number.parse().ok());
            let sequence = Sequence(number.ok_or_else(|| {
                BusError::Unavailable("a read was answered without a sequence".to_owned())
            })?);
            Ok(Some(Next { sequence, stored: stored_of(&message) }))
        }
        Some(StatusCode::NOT_FOUND) => Ok(None),
        Some(status) => Err(BusError::Unavailable(format!("a read was answered with {status}"))),
    }
}

/// Everything from `from` on. The server looks for further records to the end of the stream when a
/// batch is larger than what exists, so the first answer tells how many there are.
async fn batches(
    bus: &NatsBus,
    thread: &ThreadRef,
    from: Sequence,
) -> Result<Vec<Stored>, BusError> {
    let mut records = Vec::new();
    let mut next = Sequence(from.0.max(1));
    let mut size = 1;
    loop {
        let filter = format!("{}.>", thread_prefix(thread));
        let (batch, left) = batch(bus, (thread.partition, &filter), next, size).await?;
        let Some(last) = batch.last() else { break };
        next = last.sequence.next();
        records.extend(batch);
        if left == 0 {
            break;
        }
        size = left.min(BATCH);
    }
    records.retain(|stored| stored.subject.leaf != Leaf::Schedule);
    Ok(records)
}

/// Facts of all threads of a partition, in order.
pub(crate) async fn facts(
    bus: &NatsBus,
    partition: Partition,
    from: Sequence,
    limit: usize,
) -> Result<Vec<Stored>, BusError> {
    let filter = format!("sy.{}.*.*.plan.fact", partition.0);
    let size = u64::try_from(limit.min(MOST_RECORDS)).unwrap_or(1).max(1);
    let from = Sequence(from.0.max(1));
    Ok(batch(bus, (partition, &filter), from, size).await?.0)
}

/// One batch of direct gets; answers with the records and how many are left.
async fn batch(
    bus: &NatsBus,
    (partition, filter): (Partition, &str),
    from: Sequence,
    size: u64,
) -> Result<(Vec<Stored>, u64), BusError> {
    let mut lost = bus.lost.clone();
    lost.mark_unchanged();
    // The last answer of a batch that is not full tells only that it has ended.
    let most = usize::try_from(size).unwrap_or(usize::MAX).saturating_add(1);
    let mut answers = bus.replies.expect(most);
    let query = json!({ "seq": from.0, "next_by_subj": filter, "batch": size });
    let subject = format!("$JS.API.DIRECT.GET.{}", stream_name(partition));
    let payload = Bytes::from(query.to_string());
    bus.client
        .publish_with_reply(subject, answers.subject.clone(), payload)
        .await
        .map_err(unavailable)?;
    let mut records = Vec::new();
    let mut left = 0;
    loop {
        let answer = tokio::select! {
            biased;
            answer = answers.next() => answer,
            _ = lost.changed() => None,
            () = tokio::time::sleep(bus.settings.request) => None,
        };
        let Some(message) = answer else {
            return Err(BusError::Unavailable("a read got no answer in time".to_owned()));
        };
        match message.status {
            None | Some(StatusCode::OK) => {}
            Some(StatusCode::NO_RESPONDERS) => {
                return Err(BusError::Unavailable("the stream does not answer".to_owned()));
            }
            Some(StatusCode::NOT_FOUND) => return Ok((records, 0)),
            // End of batch.
            Some(_) => return Ok((records, left)),
        }
        left = header(&message, "Nats-Num-Pending").and_then(|n| n.parse().ok()).unwrap_or(0);
        if let Some(stored) = stored_of(&message) {
            records.push(stored);
        }
        if u64::try_from(records.len()).unwrap_or(u64::MAX) >= size {
            return Ok((records, left));
        }
    }
}

fn stored_of(message: &Message) -> Option<Stored> {
    Some(Stored {
        sequence: Sequence(header(message, "Nats-Sequence")?.parse().ok()?),
        subject: header(message, "Nats-Subject")?.parse().ok()?,
        at: timestamp(header(message, "Nats-Time-Stamp")?)?,
        payload: message.payload.clone(),
    })
}

fn unavailable(error: impl std::fmt::Display) -> BusError {
    BusError::Unavailable(error.to_string())
}

/// The slow way for a replica that stays behind: each record from the leader.
async fn one_by_one(
    bus: &NatsBus,
    thread: &ThreadRef,
    from: Sequence,
) -> Result<Vec<Stored>, BusError> {
    let filter = format!("{}.>", thread_prefix(thread));
    let mut records = Vec::new();
    let mut next = Sequence(from.0.max(1));
    loop {
        let query = json!({ "seq": next.0, "next_by_subj": filter });
        let Some(message) = message_of(bus, thread.partition, &query).await? else { break };
        let sequence = message.get("seq").and_then(Value::as_u64).map(Sequence);
        next = sequence.map_or(next, Sequence::next).max(next.next());
        records.extend(found_of(&message).map(|found| found.stored));
    }
    records.retain(|stored| stored.subject.leaf != Leaf::Schedule);
    Ok(records)
}

/// Asks the stream's leader for one message.
pub(crate) async fn from_leader(
    bus: &NatsBus,
    partition: Partition,
    query: &Value,
) -> Result<Option<Found>, BusError> {
    Ok(message_of(bus, partition, query).await?.as_ref().and_then(found_of))
}

/// The same as the leader wrote it.
async fn message_of(
    bus: &NatsBus,
    partition: Partition,
    query: &Value,
) -> Result<Option<Value>, BusError> {
    let subject = format!("$JS.API.STREAM.MSG.GET.{}", stream_name(partition));
    match ask(bus, subject, query).await? {
        Ok(answer) => Ok(answer.get("message").cloned()),
        Err(error) if error.err_code == NO_MESSAGE => Ok(None),
        Err(error) => Err(error.into_bus()),
    }
}

fn found_of(message: &Value) -> Option<Found> {
    let text = |name: &str| message.get(name).and_then(Value::as_str);
    let subject: Subject = text("subject")?.parse().ok()?;
    let headers = text("hdrs").and_then(base64).unwrap_or_default();
    let stored = Stored {
        sequence: Sequence(message.get("seq")?.as_u64()?),
        subject,
        at: timestamp(text("time")?)?,
        payload: Bytes::from(text("data").and_then(base64).unwrap_or_default()),
    };
    Some(Found { stored, headers: String::from_utf8_lossy(&headers).into_owned() })
}

fn base64(text: &str) -> Option<Vec<u8>> {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.decode(text).ok()
}

/// An instant as the server writes it.
pub(crate) fn timestamp(text: &str) -> Option<Timestamp> {
    let instant: jiff::Timestamp = text.parse().ok()?;
    Some(Timestamp(instant.as_millisecond()))
}

/// An instant as the server reads it.
pub(crate) fn rfc3339(at: Timestamp) -> String {
    let instant = jiff::Timestamp::from_millisecond(at.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    instant.to_string()
}

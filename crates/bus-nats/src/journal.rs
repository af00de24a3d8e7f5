//! Appends, and what else the journal port asks for.

use async_nats::HeaderMap;
use async_trait::async_trait;
use bytes::Bytes;
use ports::BusError;
use ports::feed::Feed;
use ports::journal::{Append, AppendError, Appended, Fence, Journal, Stored};
use proto::ids::{Partition, Sequence, TenantId, ThreadRef};
use proto::subject::{Subject, plan_filter, thread_prefix};
use proto::time::Timestamp;
use serde_json::{Value, json};

use crate::api::{
    NO_STREAM, NoReply, WRONG_LAST_SEQUENCE, WRONG_LAST_SEQUENCE_UNNAMED, api_error, ask, request,
};
use crate::connect::NatsBus;
use crate::layout::stream_name;
use crate::reads;

/// Publishes one message and reads the answer of its stream.
pub(crate) async fn publish(
    bus: &NatsBus,
    subject: String,
    headers: HeaderMap,
    payload: Bytes,
) -> Result<Appended, AppendError> {
    let answer = request(bus, subject, Some(headers), payload).await;
    let message = answer.map_err(|error| match error {
        NoReply::Unanswered(why) => AppendError::NoAnswer(why),
        NoReply::Failed(error) => AppendError::Bus(error),
    })?;
    let answer: Value = serde_json::from_slice(&message.payload)
        .map_err(|error| AppendError::NoAnswer(format!("not an answer: {error}")))?;
    if let Some(error) = answer.get("error") {
        let error = api_error(error);
        return Err(match error.err_code {
            WRONG_LAST_SEQUENCE => AppendError::Fenced { last: error.sequence() },
            WRONG_LAST_SEQUENCE_UNNAMED => AppendError::Fenced { last: None },
            // While a stream has no leader nobody knows whether a message was taken. A store that is
            // full says so before it takes one.
            _ if error.code == 503 && !error.is_full() => AppendError::NoAnswer(error.description),
            _ => AppendError::Bus(error.into_bus()),
        });
    }
    let sequence = answer.get("seq").and_then(Value::as_u64).map(Sequence);
    let duplicate = answer.get("duplicate").and_then(Value::as_bool).unwrap_or(false);
    match sequence {
        Some(sequence) => Ok(Appended { sequence, duplicate }),
        None => Err(AppendError::NoAnswer("the answer names no sequence".to_owned())),
    }
}

/// Headers that make an append conditional.
pub(crate) fn fence_headers(headers: &mut HeaderMap, subject: &Subject, fence: Fence) {
    let (expected, filter) = match fence {
        Fence::None => return,
        Fence::Plan(expected) => (expected, Some(plan_filter(&subject.thread))),
        Fence::Subject(expected) => (expected, None),
    };
    headers.insert("Nats-Expected-Last-Subject-Sequence", expected.0.to_string());
    if let Some(filter) = filter {
        headers.insert("Nats-Expected-Last-Subject-Sequence-Subject", filter);
    }
}

#[async_trait]
impl Journal for NatsBus {
    async fn append(&self, append: Append) -> Result<Appended, AppendError> {
        let mut headers = HeaderMap::new();
        fence_headers(&mut headers, &append.subject, append.fence);
        if let Some(id) = &append.dedup {
            headers.insert("Nats-Msg-Id", id.as_str());
        }
        let appended = publish(self, append.subject.to_string(), headers, append.payload).await?;
        self.recent.note(&append.subject.thread, appended.sequence);
        Ok(appended)
    }

    async fn read(
        &self,
        thread: &ThreadRef,
        from: Sequence,
        floor: Sequence,
    ) -> Result<Vec<Stored>, BusError> {
        reads::read(self, thread, from, floor).await
    }

    async fn last(&self, subject: &Subject) -> Result<Option<Stored>, BusError> {
        let query = json!({ "last_by_subj": subject.to_string() });
        let found = reads::from_leader(self, subject.thread.partition, &query).await?;
        Ok(found.map(|found| found.stored))
    }

    async fn schedule(
        &self,
        thread: &ThreadRef,
        at: Timestamp,
        fence: Fence,
    ) -> Result<(), AppendError> {
        self.write_schedule(thread, at, fence).await
    }

    async fn scheduled(&self, thread: &ThreadRef) -> Result<Option<Timestamp>, BusError> {
        self.read_schedule(thread).await
    }

    async fn purge(&self, thread: &ThreadRef, up_to: Sequence) -> Result<(), BusError> {
        // The sequence of a purge is the first one that stays.
        let filter = format!("{}.>", thread_prefix(thread));
        let query = json!({ "filter": filter, "seq": up_to.next().0 });
        let stream = stream_name(thread.partition);
        let subject = format!("$JS.API.STREAM.PURGE.{stream}");
        let answer = ask(self, subject, &query).await?;
        answer.map(|_| ()).map_err(crate::api::ApiError::into_bus)
    }

    async fn threads(&self, tenant: &TenantId, limit: usize) -> Result<Vec<ThreadRef>, BusError> {
        let mut found = Vec::new();
        for partition in 0..self.settings.partitions {
            let filter = format!("sy.{partition}.{tenant}.*.in");
            let subjects = self.subjects(partition, &filter).await?;
            found.extend(
                subjects.iter().filter_map(|s| s.parse::<Subject>().ok()).map(|s| s.thread),
            );
        }
        found.sort_by_key(|place: &ThreadRef| std::cmp::Reverse(place.thread));
        found.truncate(limit);
        Ok(found)
    }

    async fn server_time(&self) -> Result<Timestamp, BusError> {
        let subject = format!("$JS.API.STREAM.INFO.{}", stream_name(Partition(0)));
        let answer = ask(self, subject, &json!({})).await?;
        let info = answer.map_err(crate::api::ApiError::into_bus)?;
        let text = info.get("ts").and_then(Value::as_str).unwrap_or_default();
        reads::timestamp(text)
            .ok_or_else(|| BusError::Refused("the server does not tell its time".to_owned()))
    }

    fn unbroken(&self) -> Option<u64> {
        self.line()
    }
}

#[async_trait]
impl Feed for NatsBus {
    async fn facts(
        &self,
        partition: Partition,
        from: Sequence,
        limit: usize,
    ) -> Result<Vec<Stored>, BusError> {
        reads::facts(self, partition, from, limit).await
    }
}

impl NatsBus {
    /// Subjects of a stream that fit a filter, page by page.
    async fn subjects(&self, partition: u16, filter: &str) -> Result<Vec<String>, BusError> {
        let stream = stream_name(Partition(partition));
        let mut found = Vec::new();
        loop {
            let query = json!({ "subjects_filter": filter, "offset": found.len() });
            let subject = format!("$JS.API.STREAM.INFO.{stream}");
            let answer = ask(self, subject, &query).await?;
            let info = match answer {
                Ok(info) => info,
                Err(error) if error.err_code == NO_STREAM => return Ok(found),
                Err(error) => return Err(error.into_bus()),
            };
            let total = info.get("total").and_then(Value::as_u64).unwrap_or(0);
            let page = info.pointer("/state/subjects").and_then(Value::as_object);
            let Some(page) = page.filter(|page| !page.is_empty()) else { return Ok(found) };
            found.extend(page.keys().cloned());
            if u64::try_from(found.len()).unwrap_or(u64::MAX) >= total {
                return Ok(found);
            }
        }
    }
}

//! One call: written as a planner writes it, and what comes of it.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use async_nats::HeaderMap;
use proto::call::Start;
use proto::envelope::Envelope;
use proto::error_code::ErrorCode;
use proto::hash::arguments_hash;
use proto::ids::{Partition, TenantId, ThreadId, ThreadRef, ToolCallId, ToolName};
use proto::observation::{Observation, Receipt};
use proto::record::Record;
use proto::subject::{Leaf, Subject, control_subject};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};

use crate::bus::Stored;
use crate::stage::{LOOK, Stage};

/// Long enough for what has to come, on a slow machine too.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// How long nothing more may come.
const QUIET: Duration = Duration::from_millis(400);
/// Whose trace a call belongs to.
pub(crate) const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// A call. What is not said is as a planner would have it.
pub(crate) struct Call<'a> {
    stage: &'a Stage,
    pub(crate) place: ThreadRef,
    pub(crate) id: ToolCallId,
    pub(crate) tool: ToolName,
    arguments: Value,
    /// From now on, in milliseconds.
    start_in: i64,
    deadline_in: i64,
    /// Put over the record, and over its body.
    envelope: Map<String, Value>,
    body: Map<String, Value>,
    /// Where it lies, once it was written.
    pub(crate) sequence: u64,
}

/// An observation with its place.
pub(crate) struct Seen {
    pub(crate) stored: Stored,
    pub(crate) observation: Observation,
}

impl Stage {
    /// A call in a thread of its own.
    pub(crate) fn call(&self, tool: &str, arguments: Value) -> Result<Call<'_>> {
        let number = self.number();
        let place = ThreadRef {
            partition: Partition(0),
            tenant: TenantId::new("acme")?,
            thread: ThreadId::from_parts(1_700_000_000_000, u128::from(number)),
        };
        Ok(Call {
            stage: self,
            place,
            id: ToolCallId::new(format!("{number:09}"))?,
            tool: ToolName::new(tool)?,
            arguments,
            start_in: 20_000,
            deadline_in: 40_000,
            envelope: Map::new(),
            body: Map::new(),
            sequence: 0,
        })
    }
}

impl Call<'_> {
    /// The latest start and the deadline, in milliseconds from now on.
    pub(crate) fn times(mut self, start_in: i64, deadline_in: i64) -> Self {
        (self.start_in, self.deadline_in) = (start_in, deadline_in);
        self
    }

    /// A thread of this tenant.
    pub(crate) fn tenant(mut self, tenant: &str) -> Result<Self> {
        self.place.tenant = TenantId::new(tenant)?;
        Ok(self)
    }

    /// A thread of this partition.
    pub(crate) fn partition(mut self, partition: u16) -> Self {
        self.place.partition = Partition(partition);
        self
    }

    /// A field of the record's body.
    pub(crate) fn body(mut self, name: &str, value: Value) -> Self {
        self.body.insert(name.to_owned(), value);
        self
    }

    /// A field of the envelope.
    pub(crate) fn envelope(mut self, name: &str, value: Value) -> Self {
        self.envelope.insert(name.to_owned(), value);
        self
    }

    /// Dispatches it.
    pub(crate) async fn send(mut self) -> Result<Self> {
        let record = self.record().await?;
        self.sequence = self.write(Leaf::ToolCall(self.tool.clone()), &record, None).await?;
        Ok(self)
    }

    /// Dispatches it, with another process's record right behind it.
    pub(crate) async fn send_with(mut self, leaf: Leaf, body: Value) -> Result<Self> {
        let record = self.record().await?;
        let call = self.write(Leaf::ToolCall(self.tool.clone()), &record, None);
        let (sequence, other) = tokio::join!(biased; call, self.others(leaf, body));
        other?;
        self.sequence = sequence?;
        Ok(self)
    }

    /// Dispatches it, with another process's record right behind it that may be refused.
    pub(crate) async fn send_against(mut self, leaf: Leaf, body: Value) -> Result<Self> {
        let record = self.record().await?;
        let call = self.write(Leaf::ToolCall(self.tool.clone()), &record, None);
        let (sequence, _refused) = tokio::join!(biased; call, self.others(leaf, body));
        self.sequence = sequence?;
        Ok(self)
    }

    /// Has its newest delivery handed out once more, whoever holds it.
    pub(crate) async fn hand_out_again(&self) -> Result<()> {
        let latest = Instant::now() + PATIENCE;
        loop {
            if let Some(last) = self.deliveries().pop() {
                return Ok(self.stage.bus.client.publish(last.reply, "-NAK".into()).await?);
            }
            ensure!(Instant::now() < latest, "it was never handed out");
            sleep(LOOK).await;
        }
    }

    /// Puts bytes that are no record where calls lie.
    pub(crate) async fn send_bytes(mut self, bytes: &[u8]) -> Result<Self> {
        let subject = self.subject(Leaf::ToolCall(self.tool.clone()));
        self.sequence = self.stage.bus.append(&subject, bytes.to_vec(), None).await?;
        Ok(self)
    }

    async fn record(&self) -> Result<Value> {
        let contract = self.stage.contract(self.tool.as_str())?;
        let now = self.stage.bus.now().await?.0;
        let arguments = self.arguments.as_object().cloned().unwrap_or_default();
        let mut body = json!({
            "kind": "tool_call", "tool_call_id": self.id, "run": 1, "turn": 1, "position": 0,
            "tool": self.tool, "arguments": arguments,
            "arguments_hash": arguments_hash(&arguments),
            "effect": contract.effect, "fingerprint": contract.fingerprint,
            "timeout_ms": contract.timeout_ms, "retry": contract.retry,
            "start_by": now.saturating_add(self.start_in),
            "deadline": now.saturating_add(self.deadline_in),
            "idempotency_key": self.key(),
        });
        put(&mut body, &self.body);
        let mut record = json!({
            "v": 1, "min_reader": 1, "nonce": self.nonce(), "traceparent": TRACE, "body": body,
        });
        put(&mut record, &self.envelope);
        Ok(record)
    }

    /// The key that every attempt gets.
    pub(crate) fn key(&self) -> String {
        format!("{}/1/{}", self.place.tenant, self.id)
    }

    fn nonce(&self) -> String {
        format!("c0{:014x}", self.stage.number())
    }

    fn subject(&self, leaf: Leaf) -> String {
        Subject::new(self.place.clone(), leaf).to_string()
    }

    fn stream(&self) -> String {
        format!("SY_{}", self.place.partition.0)
    }

    async fn write(&self, leaf: Leaf, record: &Value, expected: Option<u64>) -> Result<u64> {
        let bytes = record.to_string().into_bytes();
        self.stage.bus.append(&self.subject(leaf), bytes, expected).await
    }

    /// Another process's record in the thread.
    pub(crate) async fn others(&self, leaf: Leaf, body: Value) -> Result<u64> {
        let record = json!({ "v": 1, "min_reader": 1, "nonce": self.nonce(), "body": body });
        let expected = matches!(leaf, Leaf::Start(_)).then_some(0);
        self.write(leaf, &record, expected).await
    }

    /// A planner bars it.
    pub(crate) async fn barred_by_planner(&self) -> Result<()> {
        let now = self.stage.bus.now().await?;
        let body = json!({
            "kind": "start", "start": "barred", "tool_call_id": self.id, "by": "planner-1", "at": now,
        });
        self.others(Leaf::Start(self.id.clone()), body).await.map(drop)
    }

    /// Another worker has begun it, and could still be at it for so many milliseconds.
    pub(crate) async fn started_by_another(&self, left: i64) -> Result<u64> {
        let now = self.stage.bus.now().await?.0;
        let body = json!({
            "kind": "start", "start": "started", "tool_call_id": self.id, "attempt": 1,
            "worker": "other-worker", "host": "far-away", "at": now.saturating_sub(1000),
            "until": now.saturating_add(left),
        });
        self.others(Leaf::Start(self.id.clone()), body).await
    }

    /// A cancel hint, as a planner gives it.
    pub(crate) async fn cancel(&self) -> Result<()> {
        let hint = json!({ "hint": "cancel_call", "tool_call_id": self.id });
        let mut headers = HeaderMap::new();
        headers.insert("Sy-Partition", self.place.partition.0.to_string());
        let subject = control_subject(&self.place);
        let client = &self.stage.bus.client;
        Ok(client.publish_with_headers(subject, headers, hint.to_string().into()).await?)
    }

    /// All its observations so far. One that breaks the schema is an error.
    pub(crate) async fn observations(&self) -> Result<Vec<Seen>> {
        let all = self.stage.bus.all(&self.stream(), &self.subject(Leaf::Observation)).await?;
        all.into_iter().map(|stored| seen(stored, &self.id)).collect()
    }

    /// Its first observation.
    pub(crate) async fn observed(&self) -> Result<Seen> {
        let latest = Instant::now() + PATIENCE;
        loop {
            if let Some(first) = self.observations().await?.into_iter().next() {
                return Ok(first);
            }
            if Instant::now() > latest {
                bail!("no observation within {} s", PATIENCE.as_secs());
            }
            sleep(LOOK).await;
        }
    }

    /// Its one observation, with which it is acknowledged; nothing more may come.
    pub(crate) async fn answered(&self) -> Result<Seen> {
        let first = self.observed().await?;
        self.acknowledged().await?;
        sleep(QUIET).await;
        let all = self.observations().await?;
        ensure!(all.len() == 1, "{} observations of one call", all.len());
        Ok(first)
    }

    /// Waits for the acknowledgement of its delivery.
    pub(crate) async fn acknowledged(&self) -> Result<()> {
        let latest = Instant::now() + PATIENCE;
        while !self.said("+ACK") {
            ensure!(Instant::now() < latest, "its delivery was never acknowledged");
            sleep(LOOK).await;
        }
        Ok(())
    }

    /// Whether the worker has said this of its delivery.
    pub(crate) fn said(&self, what: &str) -> bool {
        self.words().iter().any(|word| word.said.starts_with(what))
    }

    /// All that was said of its delivery.
    pub(crate) fn words(&self) -> Vec<crate::traffic::Word> {
        self.stage.traffic.words(&self.stream(), self.sequence)
    }

    /// How it was handed out.
    pub(crate) fn deliveries(&self) -> Vec<crate::traffic::Handed> {
        self.stage.traffic.deliveries(&self.stream(), self.sequence)
    }

    /// The records on its start subject. One that breaks the schema is an error.
    pub(crate) async fn starts(&self) -> Result<Vec<(Stored, Start)>> {
        let subject = self.subject(Leaf::Start(self.id.clone()));
        let all = self.stage.bus.all(&self.stream(), &subject).await?;
        let start = |stored: Stored| {
            let Record::Start(start) = decode(&stored)?.body else {
                bail!("a record that is no start on {}", stored.subject)
            };
            Ok((stored, start))
        };
        all.into_iter().map(start).collect()
    }

    /// Answered with a code and a receipt, and no attempt of it was ever begun: where the start is a
    /// record, one that bars it lies there before the observation.
    pub(crate) async fn refused(&self, code: ErrorCode) -> Result<Seen> {
        let seen = self.answered().await?;
        let found = &seen.observation;
        let wanted = (0, Some(code), Some(Receipt::NeverStarted));
        let got = (found.attempt, found.code, found.receipt);
        ensure!(got == wanted, "attempt, code, receipt are {got:?}, not {wanted:?}");
        if self.stage.contract(self.tool.as_str())?.effect.needs_start() {
            let starts = self.starts().await?;
            let Some((stored, Start::Barred(_))) = starts.first() else {
                bail!("the call is refused and its start subject is not barred")
            };
            ensure!(stored.sequence < seen.stored.sequence, "barred only after the answer");
        }
        Ok(seen)
    }
}

fn put(into: &mut Value, fields: &Map<String, Value>) {
    if let Some(object) = into.as_object_mut() {
        object.extend(fields.clone());
    }
}

/// Reads a record that the worker wrote.
pub(crate) fn decode(stored: &Stored) -> Result<Envelope> {
    let shown = String::from_utf8_lossy(&stored.payload);
    Envelope::decode(&stored.payload).with_context(|| format!("{}: {shown}", stored.subject))
}

fn seen(stored: Stored, id: &ToolCallId) -> Result<Seen> {
    let Record::Observation(observation) = decode(&stored)?.body else {
        bail!("a record that is no observation on {}", stored.subject)
    };
    ensure!(observation.tool_call_id == *id, "an observation of another call");
    Ok(Seen { stored, observation })
}

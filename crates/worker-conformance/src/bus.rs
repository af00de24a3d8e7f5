//! The planner's side of the wire, written from the protocol and not from our own adapter: what both
//! got wrong in the same way would not be seen otherwise.

use anyhow::{Context as _, Result, bail};
use async_nats::jetstream;
use async_nats::{Client, ConnectOptions, HeaderMap};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proto::time::Timestamp;
use proto::tool::Registration;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;

use crate::server::{PASSWORD, USER};

/// Streams of the deployment that is played.
pub(crate) const PARTITIONS: u16 = 2;
/// How long tools stay on offer without a renewal, in seconds.
pub(crate) const OFFER_TTL: u64 = 30;
const NANOS: u64 = 1_000_000_000;

/// A connection.
pub(crate) struct Bus {
    pub(crate) client: Client,
}

/// A stored message.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) sequence: u64,
    pub(crate) subject: String,
    pub(crate) headers: String,
    pub(crate) payload: Vec<u8>,
    pub(crate) at: Timestamp,
}

impl Stored {
    /// A header's text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.headers.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }
}

impl Bus {
    /// Connects and makes what planners and gateways make in a deployment.
    pub(crate) async fn open(port: u16) -> Result<Self> {
        let options = ConnectOptions::with_user_and_password(USER.to_owned(), PASSWORD.to_owned());
        let client = options.connect(format!("nats://127.0.0.1:{port}")).await?;
        let bus = Self { client };
        for part in 0..PARTITIONS {
            bus.create(&format!("SY_{part}"), &records(part)).await?;
        }
        bus.create("KV_SY_TOOLS", &bucket("SY_TOOLS", OFFER_TTL)).await?;
        bus.create("KV_SY_FREEZES", &bucket("SY_FREEZES", 0)).await?;
        bus.create("OBJ_SY_ARTIFACTS", &artifacts()).await?;
        Ok(bus)
    }

    async fn create(&self, name: &str, config: &Value) -> Result<()> {
        self.ask(&format!("$JS.API.STREAM.CREATE.{name}"), config).await.map(drop)
    }

    /// Asks for JSON; what the server refuses is an error.
    pub(crate) async fn ask(&self, subject: &str, body: &Value) -> Result<Value> {
        let answer = self.client.request(subject.to_owned(), body.to_string().into()).await?;
        let answer: Value = serde_json::from_slice(&answer.payload)?;
        match answer.get("error") {
            Some(error) => bail!("{subject} was refused: {error}"),
            None => Ok(answer),
        }
    }

    /// Stores a message, behind `expected` on its subject if that is given.
    pub(crate) async fn append(
        &self,
        subject: &str,
        payload: Vec<u8>,
        expected: Option<u64>,
    ) -> Result<u64> {
        let mut headers = HeaderMap::new();
        if let Some(expected) = expected {
            headers.insert("Nats-Expected-Last-Subject-Sequence", expected.to_string());
        }
        let sent =
            self.client.request_with_headers(subject.to_owned(), headers, payload.into()).await?;
        let answer: Value = serde_json::from_slice(&sent.payload)?;
        answer.get("seq").and_then(Value::as_u64).with_context(|| format!("not stored: {answer}"))
    }

    /// The first message of a subject, or of several, at `from` or behind.
    pub(crate) async fn next(
        &self,
        stream: &str,
        subject: &str,
        from: u64,
    ) -> Result<Option<Stored>> {
        let query = json!({ "seq": from.max(1), "next_by_subj": subject });
        let request = format!("$JS.API.STREAM.MSG.GET.{stream}");
        let answer = self.client.request(request, query.to_string().into()).await?;
        let answer: Value = serde_json::from_slice(&answer.payload)?;
        let Some(message) = answer.get("message") else { return Ok(None) };
        let text = |name: &str| message.get(name).and_then(Value::as_str).unwrap_or_default();
        let at: jiff::Timestamp = text("time").parse()?;
        Ok(Some(Stored {
            sequence: message.get("seq").and_then(Value::as_u64).context("no sequence")?,
            subject: text("subject").to_owned(),
            headers: String::from_utf8_lossy(&STANDARD.decode(text("hdrs"))?).into_owned(),
            payload: STANDARD.decode(text("data"))?,
            at: Timestamp(at.as_millisecond()),
        }))
    }

    /// All messages of a subject, or of several.
    pub(crate) async fn all(&self, stream: &str, subject: &str) -> Result<Vec<Stored>> {
        let mut found: Vec<Stored> = Vec::new();
        loop {
            let from = found.last().map_or(1, |last| last.sequence.saturating_add(1));
            match self.next(stream, subject, from).await? {
                Some(stored) => found.push(stored),
                None => return Ok(found),
            }
        }
    }

    /// What is on offer, with the place of each offer in its bucket.
    pub(crate) async fn offers(&self) -> Result<Vec<(Stored, Registration)>> {
        let entries = self.all("KV_SY_TOOLS", "$KV.SY_TOOLS.>").await?;
        let there = entries.into_iter().filter(|entry| entry.header("KV-Operation").is_none());
        there
            .map(|entry| {
                let offer = serde_json::from_slice(&entry.payload)
                    .context("an offer that is no registration (proto/schema/registration.json)")?;
                Ok((entry, offer))
            })
            .collect()
    }

    /// Server time.
    pub(crate) async fn now(&self) -> Result<Timestamp> {
        let info = self.ask("$JS.API.STREAM.INFO.SY_0", &json!({})).await?;
        let text = info.get("ts").and_then(Value::as_str).unwrap_or_default();
        let at: jiff::Timestamp = text.parse()?;
        Ok(Timestamp(at.as_millisecond()))
    }

    /// What operators hold back.
    pub(crate) async fn freeze(&self, frozen: &Value) -> Result<()> {
        let payload = frozen.to_string().into_bytes();
        self.append("$KV.SY_FREEZES.frozen", payload, None).await.map(drop)
    }

    /// A payload out of the object store.
    pub(crate) async fn artifact(&self, name: &str) -> Result<Vec<u8>> {
        let store = jetstream::new(self.client.clone()).get_object_store("SY_ARTIFACTS").await?;
        let mut object = store.get(name).await.with_context(|| format!("no object {name}"))?;
        let mut bytes = Vec::new();
        object.read_to_end(&mut bytes).await?;
        Ok(bytes)
    }
}

fn records(part: u16) -> Value {
    json!({
        "name": format!("SY_{part}"),
        "description": "Systole: the records of threads",
        "subjects": [format!("sy.{part}.>")],
        "storage": "file", "retention": "limits", "discard": "old",
        "max_msgs": -1, "max_bytes": -1, "max_msgs_per_subject": -1, "max_consumers": -1,
        "max_msg_size": -1, "max_age": 0, "num_replicas": 1,
        "duplicate_window": NANOS.saturating_mul(120),
        "allow_direct": true, "allow_msg_schedules": true, "allow_msg_ttl": true,
        "allow_rollup_hdrs": true,
    })
}

fn bucket(name: &str, ttl_s: u64) -> Value {
    json!({
        "name": format!("KV_{name}"), "subjects": [format!("$KV.{name}.>")],
        "storage": "file", "retention": "limits", "discard": "new",
        "max_msgs": -1, "max_bytes": -1, "max_msgs_per_subject": 1, "max_consumers": -1,
        "max_msg_size": -1, "max_age": NANOS.saturating_mul(ttl_s), "num_replicas": 1,
        "duplicate_window": NANOS.saturating_mul(if ttl_s == 0 { 120 } else { ttl_s.min(120) }),
        "allow_rollup_hdrs": true, "deny_delete": true, "allow_direct": true,
    })
}

fn artifacts() -> Value {
    json!({
        "name": "OBJ_SY_ARTIFACTS",
        "subjects": ["$O.SY_ARTIFACTS.C.>", "$O.SY_ARTIFACTS.M.>"],
        "storage": "file", "retention": "limits", "discard": "new",
        "max_msgs": -1, "max_bytes": -1, "max_msgs_per_subject": -1, "max_consumers": -1,
        "max_msg_size": -1, "max_age": 0, "num_replicas": 1,
        "allow_rollup_hdrs": true, "allow_direct": true,
    })
}

//! The port. Leases and keeping times follow the server's clock.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use ports::BusError;
use ports::reads::{Joined, KeptRead, ReadKey};
use ports::working_memory::{Claim, Entered, Entry, Sample, Snapshot, TurnText, WorkingMemory};
use proto::ids::{InstanceId, Sequence, ThreadRef, ToolCallId, ToolName};
use proto::time::{Timestamp, millis};
use redis::Cmd;
use tokio::time::Instant;

use crate::facts::Facts;
use crate::keys::{Keys, thread_of};
use crate::link::{Again, Link};
use crate::scripts;
use crate::settings::Settings;

/// The most bytes of one value.
pub const VALUE_LIMIT: usize = 16 * 1024 * 1024;
/// The most samples kept of one tool.
const MOST_SAMPLES: usize = 1000;
/// The most threads listed at once.
const MOST_LISTED: usize = 10_000;
/// Keeping times stay below what the server takes.
const LONGEST: Duration = Duration::from_hours(24 * 365);
/// How long to wait between two tries at start.
const START_PAUSE: Duration = Duration::from_millis(250);

/// Working memory over Redis; clones share the connection.
#[derive(Clone, Debug)]
pub struct RedisMemory {
    pub(crate) link: Arc<Link>,
    pub(crate) keys: Keys,
    settings: Arc<Settings>,
}

impl RedisMemory {
    /// Connects and checks the server's version. While it cannot be reached it is tried again and
    /// the wait is logged, until `settings.connect` has passed: [`BusError::Unavailable`]. A wrong
    /// login, wrong settings or a server that is too old are [`BusError::Refused`] at once.
    pub async fn connect(settings: Settings) -> Result<Self, BusError> {
        let memory = Self::unasked(settings)?;
        memory.wait_for_server().await?;
        Ok(memory)
    }

    fn unasked(settings: Settings) -> Result<Self, BusError> {
        let settings = Arc::new(settings);
        let link = Arc::new(Link::new(Arc::clone(&settings))?);
        Ok(Self { link, keys: Keys::new(&settings.prefix), settings })
    }

    /// What a server says of itself, whatever its version. It is asked once and not waited for.
    pub async fn inspect(settings: Settings) -> Result<Facts, BusError> {
        Self::unasked(settings)?.facts().await
    }

    async fn wait_for_server(&self) -> Result<(), BusError> {
        let deadline = Instant::now() + self.settings.connect;
        let mut said = false;
        loop {
            let error = match self.facts().await {
                Ok(facts) => return check_version(&facts),
                Err(error) => error,
            };
            if !error.is_transient() {
                return Err(error);
            }
            if Instant::now() >= deadline {
                return Err(BusError::Unavailable(format!(
                    "Redis at {} did not answer for {} s: {error}",
                    self.settings.place(),
                    self.settings.connect.as_secs()
                )));
            }
            if !std::mem::replace(&mut said, true) {
                tracing::warn!(server = self.settings.place(), %error, "waiting for Redis");
            }
            tokio::time::sleep(START_PAUSE).await;
        }
    }

    /// Whether the server answers.
    pub async fn ping(&self) -> Result<(), BusError> {
        self.link.ask::<()>(&redis::cmd("PING"), Again::Once).await
    }

    /// What the server says of itself.
    pub async fn facts(&self) -> Result<Facts, BusError> {
        let info: String = self.link.ask(&redis::cmd("INFO"), Again::Once).await?;
        Ok(Facts::read(&info))
    }

    /// Keeps fields beside their sequence, unless those of a later one are kept.
    async fn keep_newest(
        &self,
        key: String,
        sequence: Sequence,
        keep: Duration,
        fields: &[(&str, &[u8])],
    ) -> Result<(), BusError> {
        check_size(fields.iter().map(|(_, value)| value.len()).sum())?;
        let mut command = script(scripts::KEEP_NEWEST, &[&key]);
        command.arg(format!("{:020}", sequence.0)).arg(span(keep));
        for (name, value) in fields {
            command.arg(*name).arg(*value);
        }
        self.link.ask(&command, Again::Once).await
    }

    /// Sets a value where there is none; answers whether it did. Sent twice after a lost connection,
    /// the second may find the first: whoever asks then reads what is there.
    async fn set_first(&self, key: &str, value: &[u8], keep: Duration) -> Result<bool, BusError> {
        let mut command = redis::cmd("SET");
        command.arg(key).arg(value).arg("NX").arg("PX").arg(span(keep));
        let set: Option<String> = self.link.ask(&command, Again::Once).await?;
        Ok(set.is_some())
    }

    async fn lease(
        &self,
        key: &str,
        holder: &InstanceId,
        lease: Duration,
    ) -> Result<Claim, BusError> {
        // Most claims are the first of their call, for which a plain command does.
        if self.set_first(key, holder.as_str().as_bytes(), lease).await? {
            return Ok(Claim::Won);
        }
        let mut command = script(scripts::CLAIM, &[key]);
        command.arg(holder.as_str()).arg(span(lease));
        let (won, by, left): (i64, String, i64) = self.link.ask(&command, Again::Once).await?;
        if won == 1 {
            return Ok(Claim::Won);
        }
        let by = by.parse().map_err(|error| strange(key, &error))?;
        let left = Duration::from_millis(u64::try_from(left).unwrap_or_default());
        Ok(Claim::Held { by, left })
    }
}

fn check_version(facts: &Facts) -> Result<(), BusError> {
    match facts.compatible {
        Some(_) if facts.is_too_old() => Err(BusError::Refused(format!(
            "{} {} is too old: Redis 6.2 or newer, or Valkey, is needed",
            facts.product, facts.version
        ))),
        Some(_) => Ok(()),
        None => {
            tracing::warn!("the server does not tell its version; Redis 6.2 or newer is needed");
            Ok(())
        }
    }
}

pub(crate) fn script(text: &str, keys: &[&str]) -> Cmd {
    let mut command = redis::cmd("EVAL");
    command.arg(text).arg(keys.len()).arg(keys);
    command
}

/// Whole milliseconds, at least one.
pub(crate) fn span(keep: Duration) -> i64 {
    millis(keep.min(LONGEST)).max(1)
}

fn check_size(bytes: usize) -> Result<(), BusError> {
    if bytes > VALUE_LIMIT {
        return Err(BusError::TooLarge { bytes, limit: VALUE_LIMIT });
    }
    Ok(())
}

pub(crate) fn strange(key: &str, why: &dyn std::fmt::Display) -> BusError {
    BusError::Corrupt(format!("the key `{key}` holds what nobody wrote there: {why}"))
}

fn sequence(key: &str, text: &[u8]) -> Result<Sequence, BusError> {
    let text = String::from_utf8_lossy(text);
    text.parse().map(Sequence).map_err(|error| strange(key, &error))
}

fn words(key: &str, bytes: Option<Vec<u8>>) -> Result<String, BusError> {
    String::from_utf8(bytes.unwrap_or_default()).map_err(|error| strange(key, &error))
}

/// What became of a call that wants a shared read.
fn joined(key: &str, what: i64, told: Vec<u8>, number: &str) -> Result<Joined, BusError> {
    let number: i64 = number.parse().map_err(|error| strange(key, &error))?;
    Ok(match what {
        0 => Joined::Held {
            by: String::from_utf8(told).map_err(|error| strange(key, &error))?,
            left: Duration::from_millis(u64::try_from(number).unwrap_or_default()),
        },
        1 => Joined::Lead,
        _ => Joined::Kept(KeptRead { at: Timestamp(number), value: told.into() }),
    })
}

/// Reads `time:ok:number`.
fn sample(member: &str) -> Option<Sample> {
    let mut parts = member.split(':');
    let at = Timestamp(parts.next()?.parse().ok()?);
    Some(Sample { at, ok: parts.next()? == "1" })
}

#[async_trait]
impl WorkingMemory for RedisMemory {
    async fn claim(
        &self,
        thread: &ThreadRef,
        call: &ToolCallId,
        holder: &InstanceId,
        lease: Duration,
    ) -> Result<Claim, BusError> {
        self.lease(&self.keys.lease(thread, call), holder, lease).await
    }

    async fn enter(&self, entry: Entry<'_>) -> Result<Entered, BusError> {
        let Entry { thread, call, claim } = entry;
        let lease_key = self.keys.lease(thread, call);
        let keys = [self.keys.done(thread, call), self.keys.cancelled(thread, call)];
        let mut command = script(scripts::ENTER, &[&keys[0], &keys[1], &lease_key]);
        match claim {
            Some((holder, lease)) => command.arg(holder.as_str()).arg(span(lease)),
            None => command.arg("").arg(0),
        };
        let (done, cancelled, what, by, left): (Option<Vec<u8>>, i64, i64, String, i64) =
            self.link.ask(&command, Again::Once).await?;
        let claim = match what {
            1 => Some(Claim::Won),
            0 => {
                let by = by.parse().map_err(|error| strange(&lease_key, &error))?;
                let left = Duration::from_millis(u64::try_from(left).unwrap_or_default());
                Some(Claim::Held { by, left })
            }
            _ => None,
        };
        Ok(Entered { done: done.map(Bytes::from), cancelled: cancelled == 1, claim })
    }

    async fn release(
        &self,
        thread: &ThreadRef,
        call: &ToolCallId,
        holder: &InstanceId,
    ) -> Result<(), BusError> {
        let mut command = script(scripts::RELEASE, &[&self.keys.lease(thread, call)]);
        command.arg(holder.as_str());
        self.link.ask(&command, Again::Once).await
    }

    async fn keep_done(
        &self,
        thread: &ThreadRef,
        call: &ToolCallId,
        observation: Bytes,
        keep: Duration,
    ) -> Result<Bytes, BusError> {
        check_size(observation.len())?;
        let key = self.keys.done(thread, call);
        if self.set_first(&key, &observation, keep).await? {
            return Ok(observation);
        }
        let mut command = script(scripts::KEEP_FIRST, &[&key]);
        command.arg(observation.as_ref()).arg(span(keep));
        let kept: Option<Vec<u8>> = self.link.ask(&command, Again::Once).await?;
        Ok(kept.map_or(observation, Bytes::from))
    }

    async fn done(&self, thread: &ThreadRef, call: &ToolCallId) -> Result<Option<Bytes>, BusError> {
        let command = Cmd::get(self.keys.done(thread, call));
        let kept: Option<Vec<u8>> = self.link.ask(&command, Again::Once).await?;
        Ok(kept.map(Bytes::from))
    }

    async fn mark_cancelled(
        &self,
        thread: &ThreadRef,
        call: &ToolCallId,
        keep: Duration,
    ) -> Result<(), BusError> {
        let mut command = redis::cmd("SET");
        command.arg(self.keys.cancelled(thread, call)).arg("1").arg("PX").arg(span(keep));
        self.link.ask(&command, Again::Once).await
    }

    async fn is_cancelled(&self, thread: &ThreadRef, call: &ToolCallId) -> Result<bool, BusError> {
        let command = Cmd::exists(self.keys.cancelled(thread, call));
        self.link.ask(&command, Again::Once).await
    }

    async fn keep_snapshot(&self, thread: &ThreadRef, snapshot: Snapshot) -> Result<(), BusError> {
        let (key, keep) = (self.keys.snapshot(thread), self.settings.keep_snapshots);
        self.keep_newest(key, snapshot.sequence, keep, &[("payload", &snapshot.payload)]).await
    }

    async fn snapshot(&self, thread: &ThreadRef) -> Result<Option<Snapshot>, BusError> {
        let key = self.keys.snapshot(thread);
        let mut command = redis::cmd("HMGET");
        command.arg(&key).arg("sequence").arg("payload");
        let kept: (Option<Vec<u8>>, Option<Vec<u8>>) = self.link.ask(&command, Again::Once).await?;
        let (Some(at), Some(payload)) = kept else { return Ok(None) };
        Ok(Some(Snapshot { sequence: sequence(&key, &at)?, payload: payload.into() }))
    }

    async fn keep_turn_text(&self, thread: &ThreadRef, text: TurnText) -> Result<(), BusError> {
        let fields = [("text", text.text.as_bytes()), ("reasoning", text.reasoning.as_bytes())];
        let (key, keep) = (self.keys.text(thread), self.settings.keep_texts);
        self.keep_newest(key, text.started, keep, &fields).await
    }

    async fn turn_text(&self, thread: &ThreadRef) -> Result<Option<TurnText>, BusError> {
        let key = self.keys.text(thread);
        let mut command = redis::cmd("HMGET");
        command.arg(&key).arg("sequence").arg("text").arg("reasoning");
        let (started, text, reasoning): (Option<Vec<u8>>, Option<Vec<u8>>, Option<Vec<u8>>) =
            self.link.ask(&command, Again::Once).await?;
        let Some(started) = started else { return Ok(None) };
        Ok(Some(TurnText {
            started: sequence(&key, &started)?,
            text: words(&key, text)?,
            reasoning: words(&key, reasoning)?,
        }))
    }

    async fn add_samples(
        &self,
        tool: &ToolName,
        samples: &[Sample],
        window: Duration,
    ) -> Result<(), BusError> {
        if samples.is_empty() {
            return Ok(());
        }
        let keys = [&*self.keys.samples(tool), &*self.keys.sample_count(tool)];
        let mut command = script(scripts::ADD_SAMPLES, &keys);
        // Samples are timed by their bus, keys by this server: an hour is for their difference.
        let keep = window.saturating_add(Duration::from_hours(1));
        command.arg(span(window)).arg(span(keep)).arg(MOST_SAMPLES).arg(samples.len());
        for sample in samples.iter().rev().take(MOST_SAMPLES).rev() {
            command.arg(sample.at.0).arg(i64::from(sample.ok));
        }
        self.link.ask(&command, Again::Never).await
    }

    async fn samples(&self, tool: &ToolName) -> Result<Vec<Sample>, BusError> {
        let key = self.keys.samples(tool);
        let mut command = redis::cmd("ZRANGE");
        command.arg(&key).arg(0).arg(-1);
        let members: Vec<String> = self.link.ask(&command, Again::Once).await?;
        let read = |member: &String| sample(member).ok_or_else(|| strange(&key, member));
        members.iter().map(read).collect()
    }

    async fn take_probe(
        &self,
        tool: &ToolName,
        holder: &InstanceId,
        lease: Duration,
    ) -> Result<bool, BusError> {
        Ok(self.lease(&self.keys.probe(tool), holder, lease).await? == Claim::Won)
    }

    async fn join_read(
        &self,
        key: &ReadKey,
        by: &str,
        lease: Duration,
        not_before: Timestamp,
    ) -> Result<Joined, BusError> {
        let (value, lease_key) = (self.keys.read(key), self.keys.read_lease(key));
        let mut command = script(scripts::JOIN_READ, &[&value, &lease_key]);
        command.arg(by).arg(span(lease)).arg(not_before.0);
        let (what, told, number): (i64, Vec<u8>, String) =
            self.link.ask(&command, Again::Once).await?;
        joined(&value, what, told, &number)
    }

    async fn keep_read(
        &self,
        key: &ReadKey,
        by: &str,
        read: KeptRead,
        keep: Duration,
    ) -> Result<(), BusError> {
        check_size(read.value.len())?;
        let (value, lease_key) = (self.keys.read(key), self.keys.read_lease(key));
        let mut command = script(scripts::KEEP_READ, &[&value, &lease_key]);
        command.arg(by).arg(read.at.0).arg(read.value.as_ref()).arg(span(keep));
        self.link.ask(&command, Again::Once).await
    }

    async fn kept_read(&self, key: &ReadKey) -> Result<Option<KeptRead>, BusError> {
        let value = self.keys.read(key);
        let mut command = redis::cmd("HMGET");
        command.arg(&value).arg("at").arg("value");
        let kept: (Option<String>, Option<Vec<u8>>) = self.link.ask(&command, Again::Once).await?;
        let (Some(at), Some(bytes)) = kept else { return Ok(None) };
        let at = at.parse().map(Timestamp).map_err(|error| strange(&value, &error))?;
        Ok(Some(KeptRead { at, value: bytes.into() }))
    }

    async fn leave_read(&self, key: &ReadKey, by: &str) -> Result<(), BusError> {
        let mut command = script(scripts::RELEASE, &[&self.keys.read_lease(key)]);
        command.arg(by);
        self.link.ask(&command, Again::Once).await
    }

    async fn take_place(
        &self,
        tool: &ToolName,
        who: &str,
        most: u32,
        lease: Duration,
    ) -> Result<Option<Duration>, BusError> {
        let mut command = script(scripts::TAKE_PLACE, &[&self.keys.places(tool)]);
        command.arg(who).arg(most).arg(span(lease));
        let left: i64 = self.link.ask(&command, Again::Once).await?;
        Ok(u64::try_from(left).ok().map(Duration::from_millis))
    }

    async fn leave_place(&self, tool: &ToolName, who: &str) -> Result<(), BusError> {
        let mut command = redis::cmd("ZREM");
        command.arg(self.keys.places(tool)).arg(who);
        self.link.ask(&command, Again::Once).await
    }

    async fn set_active(
        &self,
        thread: &ThreadRef,
        deadline: Option<Timestamp>,
    ) -> Result<(), BusError> {
        let (key, member) = (self.keys.active(), thread.to_string());
        let command = match deadline {
            Some(at) => Cmd::zadd(key, member, at.0),
            None => Cmd::zrem(key, member),
        };
        self.link.ask(&command, Again::Once).await
    }

    async fn active(&self, until: Timestamp, limit: usize) -> Result<Vec<ThreadRef>, BusError> {
        let key = self.keys.active();
        let limit = limit.min(MOST_LISTED);
        let mut command = redis::cmd("ZRANGEBYSCORE");
        command.arg(&key).arg("-inf").arg(until.0).arg("LIMIT").arg(0).arg(limit);
        let members: Vec<String> = self.link.ask(&command, Again::Once).await?;
        let read = |member: &String| thread_of(member).ok_or_else(|| strange(&key, member));
        members.iter().map(read).collect()
    }
}

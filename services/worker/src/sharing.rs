//! What a call shares with others: a read that equal calls make once, and the places of its tool.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ports::reads::{Joined, KeptRead, ReadKey};
use proto::error_code::ErrorCode;
use proto::hash;
use proto::ids::ThreadRef;
use proto::observation::{Observation, Provenance};
use proto::tool::Effect;
use serde::{Deserialize, Serialize};
use tool_core::decide::{Room, Share, Wants};

use crate::case::Case;
use crate::resource::Taken;
use crate::running::Upkeep;

/// Results are kept for whoever waits for them, whatever their tool says.
const KEEP_LEAST: Duration = Duration::from_mins(1);

/// What a call has of what is shared.
#[derive(Debug, Default)]
pub(crate) struct Sharing {
    /// Others wait for its read.
    leads: AtomicBool,
    /// It has a place of its tool.
    placed: bool,
    /// The resource that it changes.
    pub(crate) taken: Option<Taken>,
    /// Whether an effect began.
    pub(crate) began: AtomicBool,
    /// Whether somebody else may still be at it.
    pub(crate) unsure: AtomicBool,
}

/// A result as other calls find it.
#[derive(Debug, Serialize, Deserialize)]
struct SharedRead {
    thread: ThreadRef,
    observation: Observation,
}

impl Case<'_> {
    /// What its tool wants to be known before a call begins.
    pub(crate) fn wants(&self) -> Wants {
        let policy = &self.tool.policy;
        Wants {
            share: policy.cache_ttl_ms > 0 && self.effect() == Effect::ReadOnly,
            room: true,
            resource: policy.resource.is_some(),
        }
    }

    pub(crate) fn effect(&self) -> Effect {
        self.call.terms.effect.max(self.tool.contract.effect)
    }

    /// Equal reads of one tenant: the same tool in the same version with the same arguments.
    fn read_key(&self) -> ReadKey {
        let (tool, arguments) = (&self.tool.contract, &self.call.arguments_hash);
        let text = format!("{} {} {arguments}", tool.name, tool.fingerprint);
        ReadKey(format!("{}/{}", self.thread.tenant, hash::fingerprint(&text)))
    }

    /// Names the call and who works on it.
    pub(crate) fn who(&self) -> String {
        let me = &self.shared.config.instance;
        format!("{me}/{}/{}", self.thread, self.call.tool_call_id)
    }

    /// Joins the calls that want the same read. A result will do if its execution began no longer than
    /// the tool's limit before this call was dispatched.
    pub(crate) async fn share(&mut self) -> Share {
        let oldest = self.stored_at.before(Duration::from_millis(self.tool.policy.cache_ttl_ms));
        let (key, who, lease) = (self.read_key(), self.who(), self.shared.config.lease);
        match self.shared.ports.working.join_read(&key, &who, lease, oldest).await {
            Ok(Joined::Lead) => {
                self.sharing.leads.store(true, Ordering::Relaxed);
                if let Some(running) = &self.running {
                    running.keep_up(Upkeep { who, read: Some(key), place: None });
                }
                Share::Lead
            }
            Ok(Joined::Held { left, .. }) => Share::Held(left),
            Ok(Joined::Kept(read)) => match self.adopted(&read, false).await {
                Some(observation) => {
                    self.shared.config.metrics.shared(self.tool.contract.name.as_str(), "kept");
                    Share::Kept(Box::new(observation))
                }
                None => Share::Unknown,
            },
            Err(error) => {
                tracing::debug!(%error, "a read is not shared");
                Share::Unknown
            }
        }
    }

    /// A kept result as the answer of this call; its whole is stored with this thread too.
    async fn adopted(&self, read: &KeptRead, stale: bool) -> Option<Observation> {
        let SharedRead { thread, mut observation } = serde_json::from_slice(&read.value).ok()?;
        if thread.tenant != self.thread.tenant {
            tracing::error!(%thread, "a shared read of another tenant is not used");
            return None;
        }
        if thread != *self.thread
            && let Some(whole) = observation.artifact.take()
        {
            observation.artifact = self.adopted_whole(&thread, &whole.id).await;
        }
        let tool_call_id = observation.tool_call_id;
        if let Some(stamp) = &mut observation.stamp {
            stamp.from = Some(Provenance { thread, tool_call_id, stale });
        }
        observation.tool_call_id = self.call.tool_call_id.clone();
        observation.attempt = 0;
        Some(observation)
    }

    async fn adopted_whole(
        &self,
        thread: &ThreadRef,
        id: &proto::ids::ArtifactId,
    ) -> Option<proto::observation::ArtifactRef> {
        let artifacts = &self.shared.ports.artifacts;
        let bytes = artifacts.get(thread, id).await.ok()??;
        artifacts.put(self.thread, bytes).await.ok()
    }

    /// Lets the others have the result of a read that this call led, before its own thread has it.
    pub(crate) async fn hand_on(&self, observation: &Observation, began: proto::time::Timestamp) {
        if !self.sharing.leads.swap(false, Ordering::Relaxed) {
            return;
        }
        let (working, key, who) = (&self.shared.ports.working, self.read_key(), self.who());
        let read = SharedRead { thread: self.thread.clone(), observation: observation.clone() };
        let done = match serde_json::to_vec(&read) {
            Ok(value) if observation.is_ok() => {
                let policy = &self.tool.policy;
                let keep = Duration::from_millis(policy.cache_ttl_ms.max(policy.stale_ms));
                let keep = keep.saturating_add(KEEP_LEAST);
                let read = KeptRead { at: began, value: value.into() };
                working.keep_read(&key, &who, read, keep).await
            }
            Ok(_) | Err(_) => working.leave_read(&key, &who).await,
        };
        if let Err(error) = done {
            tracing::debug!(%error, "a read is not shared any more");
        }
    }

    /// An older result that stands in for a failure, where the tool allows it.
    pub(crate) async fn stand_in(&self, code: Option<ErrorCode>) -> Option<Observation> {
        let may_pass = matches!(
            code?,
            ErrorCode::TimedOut
                | ErrorCode::Unavailable
                | ErrorCode::ToolFailed
                | ErrorCode::ToolCrashed
                | ErrorCode::ToolNotStarted
                | ErrorCode::Exhausted
        );
        let stale = Duration::from_millis(self.tool.policy.stale_ms);
        if !may_pass || stale.is_zero() || self.effect() != Effect::ReadOnly {
            return None;
        }
        let read = self.shared.ports.working.kept_read(&self.read_key()).await.ok()??;
        let now = self.now();
        if read.at.after(stale) < now {
            return None;
        }
        let mut observation = self.adopted(&read, true).await?;
        let seconds = now.since(read.at).as_secs();
        let code = code.map_or("failed", ErrorCode::as_str);
        let note = format!(
            "[Stale: the call failed ({code}); this is the result of an equal call {seconds} s ago.]\n"
        );
        observation.content.insert_str(0, &note);
        self.shared.config.metrics.shared(self.tool.contract.name.as_str(), "stale");
        Some(observation)
    }

    /// A place among all workers of the tool, and memory and disk for it.
    pub(crate) async fn room(&mut self) -> Room {
        if let Some(words) = self.shared.room.shortage() {
            return Room::Full(words);
        }
        let Some(most) = self.tool.policy.concurrency.fleet else { return Room::Free };
        let (tool, who, lease) = (&self.call.tool, self.who(), self.shared.config.lease);
        match self.shared.ports.working.take_place(tool, &who, most, lease).await {
            Ok(None) => {
                self.sharing.placed = true;
                if let Some(running) = &self.running {
                    let place = Some((tool.clone(), most));
                    running.keep_up(Upkeep { who, read: None, place });
                }
                Room::Free
            }
            Ok(Some(_)) => {
                Room::Full(format!("All {most} places of {tool} on all workers are taken."))
            }
            Err(error) => {
                tracing::debug!(%error, "the call runs without a place");
                Room::Free
            }
        }
    }

    /// Gives back what the call shares. Whoever has its answer may still hold a resource from an
    /// earlier delivery.
    pub(crate) async fn leave(&mut self, answered: bool) {
        let (working, who) = (&self.shared.ports.working, self.who());
        if self.sharing.leads.swap(false, Ordering::Relaxed)
            && let Err(error) = working.leave_read(&self.read_key(), &who).await
        {
            tracing::debug!(%error, "others wait for a read that nobody makes until a lease ends");
        }
        if std::mem::take(&mut self.sharing.placed)
            && let Err(error) = working.leave_place(&self.call.tool, &who).await
        {
            tracing::debug!(%error, "a place was not given back; it ends by itself");
        }
        if let Err(error) = self.give_resource_back(answered).await {
            tracing::warn!(%error, "a resource was not given back; it is free when its time is over");
        }
    }
}

//! The one observation of a call: shaped, kept, published.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use argument_check::check_json;
use bytes::Bytes;
use ports::BusError;
use ports::append::{Landed, append_surely};
use ports::journal::{Append, Fence};
use ports::working_memory::Sample;
use proto::envelope::Envelope;
use proto::error_code::ErrorCode;
use proto::ids::ToolName;
use proto::observation::{ArtifactRef, Observation, Stamp};
use proto::record::Record;
use proto::subject::{Leaf, Subject};
use proto::time::millis;
use service_runtime::bounded::within;
use tokio::time::sleep;
use tool_core::answer::Answer;
use tool_core::breaker::WINDOW;
use tool_core::outcome::End;
use tool_core::shape;

use crate::attempt::Over;
use crate::breaker::TELL_EVERY;
use crate::case::Case;
use crate::handling::Settled;
use crate::shared::Shared;
use crate::tools::Tools;

/// How long the check of a result may take; one that takes longer is accepted and marked.
const EVALUATION: Duration = Duration::from_secs(5);
/// Longest pause before a result is published again.
const PUBLISH_AGAIN: Duration = Duration::from_secs(5);
/// Words of so many bytes are not what makes a record too large.
const SHORTEST: usize = 256;

/// Half of the words, for a bus that takes less than usual in one message.
fn shortened(observation: &Observation) -> Observation {
    tracing::warn!(
        bytes = observation.content.len(),
        "a result is too large for the bus and is cut"
    );
    let content = shape::within(&observation.content, observation.content.len() / 2);
    Observation { content, ..observation.clone() }
}

impl Case<'_> {
    /// Answers without an attempt. No attempt has the number 0, so a late result of one is never
    /// taken for a repetition of this answer.
    pub(crate) async fn answer(&self, answer: Answer) -> Result<Settled, BusError> {
        if let Some(older) = self.stand_in(answer.code).await {
            return self.publish(&older).await;
        }
        let observation =
            self.observation(0, &answer, None, self.stamp(self.now(), Duration::ZERO, 0));
        self.publish(&observation).await
    }

    /// Reports what came of an attempt: kept first, so that a crash before the publication does not
    /// lose it.
    pub(crate) async fn report(&self, answer: Answer, over: Over) -> Result<Settled, BusError> {
        let seconds = &self.shared.config.metrics.tool_call_seconds;
        let name = self.tool.contract.name.as_str();
        seconds.with_label_values(&[name]).observe(over.took.as_secs_f64());
        if over.end.sample() == Some(false)
            && let Some(older) = self.stand_in(answer.code).await
        {
            let older = self.keep_done(older).await;
            return self.publish(&older).await;
        }
        let raw = shape::Raw { bytes: &over.output.bytes, total: over.output.total };
        let tokens = self.tool.contract.result_tokens;
        let shaped = shape::shape(raw, &self.shared.config.redactor, tokens, &self.tool.form);
        let answer = self.evaluated(answer, &over.output.bytes).await;
        let words = self.shared.config.redactor.redact(&answer.content);
        let mut content = shape::compose(&words, &shaped.content);
        let artifact = match shaped.full {
            Some(full) => self.keep_full(full, &mut content).await,
            None => None,
        };
        let stamp = self.stamp(over.started_at, over.took, over.way);
        let answer = Answer { content, ..answer };
        let observation = self.observation(over.number, &answer, artifact, stamp);
        let observation = self.keep_done(observation).await;
        self.hand_on(&observation, over.started_at).await;
        self.publish(&observation).await
    }

    /// A good result that breaks the tool's promise is reported as such; the model sees both.
    async fn evaluated(&self, answer: Answer, result: &Bytes) -> Answer {
        let Some(check) = self.tool.result_check().filter(|_| answer.code.is_none()) else {
            return answer;
        };
        let (check, result) = (check.clone(), result.clone());
        match within(EVALUATION, move || check_json(&check, &result)).await {
            Some(Ok(())) => answer,
            Some(Err(why)) => {
                let content = format!(
                    "The tool ran to its end, but its result breaks the schema that it promises: \
                     {why}\n{}",
                    answer.content
                );
                Answer { code: Some(ErrorCode::InvalidResult), content, ..answer }
            }
            None => {
                let content = format!("[not checked against the tool's schema] {}", answer.content);
                Answer { content, ..answer }
            }
        }
    }

    /// Nothing fails because a result was large: one that cannot be stored is cut and says so.
    async fn keep_full(&self, full: String, content: &mut String) -> Option<ArtifactRef> {
        match self.shared.ports.artifacts.put(self.thread, Bytes::from(full)).await {
            Ok(artifact) => Some(artifact),
            Err(error) => {
                tracing::warn!(%error, "a full result was not stored");
                content.push_str("\n[The full result could not be stored.]");
                None
            }
        }
    }

    fn stamp(&self, started_at: proto::time::Timestamp, took: Duration, fallback: u32) -> Stamp {
        Stamp {
            worker: self.shared.config.instance.clone(),
            fingerprint: self.tool.contract.fingerprint.clone(),
            arguments_hash: self.call.arguments_hash.clone(),
            started_at,
            duration_ms: u64::try_from(millis(took)).unwrap_or(0),
            from: None,
            fallback,
        }
    }

    fn observation(
        &self,
        attempt: u32,
        answer: &Answer,
        artifact: Option<ArtifactRef>,
        stamp: Stamp,
    ) -> Observation {
        Observation {
            tool_call_id: self.call.tool_call_id.clone(),
            attempt,
            code: answer.code,
            content: shape::within_message(&answer.content),
            artifact,
            receipt: answer.receipt,
            stamp: Some(stamp),
        }
    }

    /// The first result that was kept stays the result.
    async fn keep_done(&self, observation: Observation) -> Observation {
        let Ok(bytes) = serde_json::to_vec(&observation) else { return observation };
        let working = &self.shared.ports.working;
        let keep = self.shared.config.keep_results;
        let kept =
            working.keep_done(self.thread, &self.call.tool_call_id, bytes.into(), keep).await;
        match kept {
            Ok(kept) => serde_json::from_slice(&kept).unwrap_or(observation),
            Err(error) => {
                tracing::debug!(%error, "a result is not kept");
                observation
            }
        }
    }

    /// Publishes until it is known to lie there. A result that only this process has is not given
    /// up while the process lives.
    pub(crate) async fn publish(&self, observation: &Observation) -> Result<Settled, BusError> {
        let mut observation = Cow::Borrowed(observation);
        let mut append = self.append_of(&observation);
        let mut pause = Duration::from_millis(200);
        loop {
            let journal = self.shared.ports.journal.as_ref();
            match append_surely(journal, &append, self.shared.config.patience).await {
                Ok(Landed::At(_) | Landed::Duplicate(_) | Landed::Lost { .. }) => {
                    let name = self.tool.contract.name.as_str();
                    self.shared.config.metrics.observed(name, &observation);
                    return Ok(Settled::Ack);
                }
                Err(BusError::TooLarge { .. }) if observation.content.len() > SHORTEST => {
                    observation = Cow::Owned(shortened(&observation));
                    append = self.append_of(&observation);
                    continue;
                }
                Err(error) if self.shared.shutdown.is_draining() => return Err(error),
                Err(error) => tracing::warn!(%error, "an observation was not published"),
            }
            sleep(pause).await;
            pause = pause.saturating_mul(2).min(PUBLISH_AGAIN);
        }
    }

    fn append_of(&self, observation: &Observation) -> Append {
        let nonce = self.shared.ports.ids.nonce();
        let (thread, id) = (self.thread, &observation.tool_call_id);
        let body = Record::Observation(observation.clone());
        Append {
            subject: Subject::new(thread.clone(), Leaf::Observation),
            payload: Envelope::new(nonce.clone(), self.traceparent.clone(), body).encode().into(),
            nonce,
            fence: Fence::None,
            dedup: Some(format!("{thread}/{id}/{}", observation.attempt)),
        }
    }

    /// Counts an end for the tool's breaker.
    pub(crate) async fn sample(&self, end: &End) {
        let Some(ok) = end.sample() else { return };
        let due = self.tool.breaker.count(Sample { at: self.now(), ok });
        tell(self.shared, &self.call.tool, &due).await;
        if !ok {
            self.tool.breaker.forget();
        }
    }
}

/// Lets all workers of a tool know of outcomes.
pub(crate) async fn tell(shared: &Shared, tool: &ToolName, samples: &[Sample]) {
    if samples.is_empty() {
        return;
    }
    if let Err(error) = shared.ports.working.add_samples(tool, samples, WINDOW).await {
        tracing::debug!(%error, "outcomes were not counted");
    }
}

/// Tells the good outcomes that no later one has told, for ever.
pub(crate) async fn keep_telling(shared: Arc<Shared>, tools: Tools) {
    loop {
        sleep(TELL_EVERY).await;
        tell_all(&shared, &tools).await;
    }
}

/// Tells all that was not told.
pub(crate) async fn tell_all(shared: &Shared, tools: &Tools) {
    for tool in tools.iter() {
        tell(shared, &tool.contract.name, &tool.breaker.untold()).await;
    }
}

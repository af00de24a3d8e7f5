//! Finding out what has to be known of a call.

use std::time::Duration;

use bytes::Bytes;
use ports::BusError;
use ports::working_memory::{Claim, Entry};
use proto::call::Start;
use proto::envelope::Envelope;
use proto::fact::Fact;
use proto::ids::Sequence;
use proto::record::Record;
use proto::tool::Effect;
use tokio::time::Instant;
use tool_core::breaker::{Breaker, Sample, judge};
use tool_core::decide::{Gate, History, Kept, Known, Lease, Look, StartState};
use tool_core::freeze::held;

use crate::case::Case;
use crate::report::tell;

impl Case<'_> {
    /// Looks, and adds what was found. Working memory that does not answer tells nothing; a journal
    /// that does not answer is an error.
    pub(crate) async fn look(&mut self, look: Look, known: &mut Known<'_>) -> Result<(), BusError> {
        match look {
            Look::History => known.history = Some(self.history().await?),
            Look::Done => self.enter(known).await,
            Look::Start => known.start = Some(self.newest_start().await?),
            Look::Cancelled => known.cancelled = Some(self.is_cancelled().await),
            Look::Lease => known.lease = Some(self.lease().await),
            Look::Gate => known.gate = Some(self.gate().await?),
            Look::Share => known.share = Some(self.share().await),
            Look::Room => known.room = Some(self.room().await),
            Look::Resource => known.resource = Some(self.take_resource().await?),
            Look::Probe => known.probed = Some(self.probe(known.start.as_ref()).await),
        }
        Ok(())
    }

    async fn history(&self) -> Result<History, BusError> {
        let journal = &self.shared.ports.journal;
        let records = journal.read(self.thread, self.sequence.next(), Sequence::NONE).await?;
        let mut history = History::Open;
        for record in records {
            let Ok(envelope) = Envelope::decode(&record.payload) else { continue };
            match envelope.body {
                Record::Observation(seen) if seen.tool_call_id == self.call.tool_call_id => {
                    return Ok(History::Observed);
                }
                Record::Fact(Fact::CallClosed { observation })
                    if observation.tool_call_id == self.call.tool_call_id =>
                {
                    history = History::Closed;
                }
                Record::Input(_)
                | Record::Fact(_)
                | Record::ToolCall(_)
                | Record::Start(_)
                | Record::Observation(_)
                | Record::Tick => {}
            }
        }
        Ok(history)
    }

    /// All that working memory is asked before an attempt, at once: each question is a way to a store
    /// and back. A call that may be repeated is claimed with it, unless it is late.
    async fn enter(&mut self, known: &mut Known<'_>) {
        let (me, lease) = (&self.shared.config.instance, self.shared.config.lease);
        let claims = !known.effect().needs_start() && known.history.is_none();
        let claim = claims.then_some((me, lease));
        let entry = Entry { thread: self.thread, call: &self.call.tool_call_id, claim };
        let entered = match self.shared.ports.working.enter(entry).await {
            Ok(entered) => entered,
            Err(error) => {
                tracing::debug!(%error, "working memory has no word on a call");
                known.done = Some(Kept::Unknown);
                return;
            }
        };
        known.done = Some(read_kept(entered.done));
        known.cancelled = Some(self.cancel.is_cancelled() || entered.cancelled);
        known.lease = entered.claim.map(|claim| self.claimed(&claim));
    }

    fn claimed(&mut self, claim: &Claim) -> Lease {
        match claim {
            Claim::Won => {
                self.leased = true;
                if let Some(running) = &self.running {
                    running.set_leased(true);
                }
                Lease::Ours
            }
            Claim::Held { left, .. } => Lease::Held(*left),
        }
    }

    async fn newest_start(&self) -> Result<StartState, BusError> {
        let Some(stored) = self.shared.ports.journal.last(&self.start_subject()).await? else {
            return Ok(StartState::None);
        };
        let unreadable = |why: String| BusError::Refused(format!("a start record: {why}"));
        let envelope =
            Envelope::decode(&stored.payload).map_err(|error| unreadable(error.to_string()))?;
        let Record::Start(start) = envelope.body else {
            return Err(unreadable(format!("it is of kind {}", envelope.body.kind())));
        };
        Ok(match start {
            Start::Barred(_) => StartState::Barred,
            Start::Held(_) => return Err(unreadable("it is about a resource".to_owned())),
            Start::Started(started) => {
                let unused = self.shared.unused.contains(&envelope.nonce);
                StartState::Started { sequence: stored.sequence, started, unused }
            }
        })
    }

    async fn is_cancelled(&self) -> bool {
        let working = &self.shared.ports.working;
        let marked = working.is_cancelled(self.thread, &self.call.tool_call_id).await;
        self.cancel.is_cancelled() || marked.unwrap_or(false)
    }

    async fn lease(&mut self) -> Lease {
        let working = &self.shared.ports.working;
        let (holder, span) = (&self.shared.config.instance, self.shared.config.lease);
        match working.claim(self.thread, &self.call.tool_call_id, holder, span).await {
            Ok(claim) => self.claimed(&claim),
            Err(error) => {
                tracing::debug!(%error, "the call runs without a lease");
                Lease::Unknown
            }
        }
    }

    /// What an operator said before this look holds the call back. A list that cannot be read holds
    /// it back too; one that does not answer now is an error.
    pub(crate) async fn frozen(&self) -> Result<Option<String>, BusError> {
        let effect = self.call.terms.effect.max(self.tool.contract.effect);
        let age = match effect {
            Effect::ReadOnly | Effect::Idempotent => self.shared.config.freeze_lag,
            Effect::Checkable | Effect::Irreversible => Duration::ZERO,
        };
        let frozen = match self.shared.frozen(age).await {
            Ok(frozen) => frozen,
            Err(error) if error.is_transient() => return Err(error),
            Err(error) => {
                tracing::warn!(%error, "what is frozen cannot be read, so nothing begins");
                return Ok(Some("What operators have frozen cannot be read.".to_owned()));
            }
        };
        Ok(held(&frozen, &self.thread.tenant, &self.call.tool, effect))
    }

    /// A breaker that nobody can judge is closed.
    async fn gate(&self) -> Result<Gate, BusError> {
        if let Some(words) = self.frozen().await? {
            return Ok(Gate::Frozen(words));
        }
        Ok(self.breaker().await)
    }

    async fn breaker(&self) -> Gate {
        if self.tool.breaker.is_closed() {
            return Gate::Open;
        }
        tell(self.shared, &self.call.tool, &self.tool.breaker.untold()).await;
        let (working, asked) = (&self.shared.ports.working, Instant::now());
        let Ok(samples) = working.samples(&self.call.tool).await else { return Gate::Open };
        let samples: Vec<Sample> =
            samples.iter().map(|sample| Sample { at: sample.at, ok: sample.ok }).collect();
        match judge(&samples, self.now()) {
            Breaker::Closed => {
                self.tool.breaker.see_closed(asked);
                Gate::Open
            }
            Breaker::Open { .. } => Gate::Shut,
            Breaker::HalfOpen => self.probe_of_breaker().await,
        }
    }

    async fn probe_of_breaker(&self) -> Gate {
        let lease = self.tool.contract.timeout().saturating_add(self.shared.config.grace);
        let holder = &self.shared.config.instance;
        match self.shared.ports.working.take_probe(&self.call.tool, holder, lease).await {
            Ok(true) | Err(_) => Gate::Open,
            Ok(false) => Gate::Shut,
        }
    }
}

fn read_kept(kept: Option<Bytes>) -> Kept {
    let Some(bytes) = kept else { return Kept::Nothing };
    match serde_json::from_slice(&bytes) {
        Ok(observation) => Kept::Result(Box::new(observation)),
        Err(error) => {
            tracing::warn!(%error, "a kept result cannot be read");
            Kept::Nothing
        }
    }
}

//! Attempts that begin with a start record.
//!
//! Everything is made ready first, so that the record can name the process group. The effect begins
//! only after the record is known to be ours and a last look at the process's own clock: a worker
//! that stood still in between must not begin what others already give up on.

use std::sync::atomic::Ordering;
use std::time::Duration;

use ports::BusError;
use ports::append::Landed;
use ports::working_memory::Claim;
use proto::call::{Start, Started};
use proto::ids::{InstanceId, Sequence};
use proto::observation::Receipt;
use proto::tool::Retry;
use tokio::time::Instant;
use tool_core::answer::{Answer, Earlier, Refusal, effect_found, stopped_before_effect};
use tool_core::decide::StartState;
use tool_core::outcome::{Attempt, End, Next, Probed, after};
use tool_core::{doubt, receipt};

use crate::attempt::{Over, Rested, over};
use crate::case::{Case, Flow};
use crate::executor::{Output, Prepared};
use crate::handling::Settled;

/// How much longer than its last moment to start a call is marked as begun.
const MARK: Duration = Duration::from_mins(1);

/// A start record of ours.
struct Claimed {
    started: Started,
    sequence: Sequence,
    /// When the record was written, by this process's own clock.
    began: Instant,
}

impl Case<'_> {
    /// Makes attempt `attempt` ready, claims it behind `expected`, runs it.
    pub(crate) async fn start(&self, attempt: u32, expected: Sequence) -> Result<Flow, BusError> {
        let (prepared, way) = match self.ready_to_start(attempt).await {
            Ok(ready) => ready,
            Err(flow) => return Ok(flow),
        };
        if let Some(words) = self.frozen().await? {
            return Ok(Flow::Refuse(frozen(words, attempt)));
        }
        // Making ready and asking may have taken time; nothing is claimed late, cancelled or on the
        // way out. Nothing is waited for between this look at the clock and the claim.
        if self.now() > self.call.start_by || self.cancel.is_cancelled() {
            return Ok(Flow::LookAgain);
        }
        if self.shared.shutdown.is_draining() {
            return Ok(Flow::Settled(Settled::Back(Duration::ZERO)));
        }
        let process_group = prepared.process_group();
        let Some(claimed) = self.claim(attempt, expected, process_group).await? else {
            return Ok(Flow::LookAgain);
        };
        if let Some(answer) = self.held_at_last(&claimed).await {
            drop(prepared);
            return self.unused(&claimed, answer).await;
        }
        let over = Over { way, ..self.run_started(&claimed, prepared).await };
        self.conclude(claimed, over).await
    }

    /// Why the effect must not begin although the call is claimed: the claim may have taken time.
    async fn held_at_last(&self, claimed: &Claimed) -> Option<Answer> {
        let frozen = self.frozen().await;
        if self.cancel.is_cancelled() {
            return Some(receipt::cancelled(Receipt::StoppedBeforeEffect));
        }
        if claimed.started.attempt == 1
            && let Some(other) = self.begun_by_another().await
        {
            self.sharing.unsure.store(true, Ordering::Relaxed);
            return Some(doubt::of_lost_start(&other));
        }
        if claimed.began.elapsed() > self.shared.config.grace / 2 {
            return Some(stopped_before_effect());
        }
        match frozen {
            Ok(words) => words.map(|words| Refusal::Frozen(words).answer(Earlier::Claimed)),
            Err(_) => Some(stopped_before_effect()),
        }
    }

    /// An attempt that is ready, and which of the tool's ways it takes; tried again, then another way,
    /// while nothing began and the manifest allows.
    async fn ready_to_start(&self, attempt: u32) -> Result<(Box<dyn Prepared>, u32), Flow> {
        let (mut tries, mut way) = (1, 0);
        loop {
            let limit = Instant::now() + self.tool.contract.timeout();
            let executor = self.tool.way(way).unwrap_or(&self.tool.executor).as_ref();
            let not_started = match self.make_ready(executor, attempt, limit).await {
                Ok(prepared) => return Ok((prepared, way)),
                Err(not_started) => not_started,
            };
            if self.cancel.is_cancelled() {
                return Err(Flow::LookAgain);
            }
            let end = End::NotStarted { why: not_started.why, retryable: not_started.retryable };
            let budget = self.budget(tries, self.call.start_by, Duration::ZERO);
            let pause = match after(&self.attempt_of(tries), &end, &budget) {
                Next::Retry(pause) => pause,
                Next::Answer(_) if self.tool.way(way.saturating_add(1)).is_some() => {
                    (way, tries) = (way.saturating_add(1), 0);
                    Duration::ZERO
                }
                Next::Answer(answer) => return Err(Flow::Refuse(answer)),
                Next::Probe => return Err(Flow::LookAgain),
            };
            self.sample(&end).await;
            match self.rest(pause).await {
                Rested::Over => tries = tries.saturating_add(1),
                Rested::Cancelled => return Err(Flow::LookAgain),
                Rested::Draining => return Err(Flow::Settled(Settled::Back(Duration::ZERO))),
            }
        }
    }

    /// Writes the start record; `None` when somebody else was first. A record that may or may not
    /// lie there is remembered as never used.
    async fn claim(
        &self,
        attempt: u32,
        expected: Sequence,
        process_group: Option<i32>,
    ) -> Result<Option<Claimed>, BusError> {
        let (began, at) = (Instant::now(), self.now());
        let span = self.tool.contract.timeout().saturating_add(self.shared.config.grace);
        let started = Started {
            tool_call_id: self.call.tool_call_id.clone(),
            attempt,
            worker: self.shared.config.instance.clone(),
            host: self.shared.config.host.clone(),
            process_group,
            at,
            until: at.after(span),
        };
        let nonce = self.shared.ports.ids.nonce();
        self.shared.unused.add(nonce.clone());
        let landed =
            self.append_start(Start::Started(started.clone()), expected, nonce.clone()).await?;
        self.shared.unused.remove(&nonce);
        Ok(match landed {
            Landed::At(sequence) | Landed::Duplicate(sequence) => {
                Some(Claimed { started, sequence, began })
            }
            Landed::Lost { .. } => {
                self.shared.config.metrics.conflicts.inc();
                None
            }
        })
    }

    /// Marks the call as begun in working memory, which does not lose what the journal loses. The mark
    /// of somebody else means that the record of their start was lost. Where working memory does not
    /// answer, the record alone has to do.
    async fn begun_by_another(&self) -> Option<InstanceId> {
        let keep = self.call.start_by.since(self.now()).saturating_add(MARK);
        let (working, me) = (&self.shared.ports.working, &self.shared.config.instance);
        match working.claim(self.thread, &self.call.tool_call_id, me, keep).await {
            Ok(Claim::Held { by, .. }) => Some(by),
            Ok(Claim::Won) => None,
            Err(error) => {
                tracing::debug!(%error, "the start was not marked in working memory");
                None
            }
        }
    }

    /// The record is ours and its effect never began.
    async fn unused(&self, claimed: &Claimed, answer: Answer) -> Result<Flow, BusError> {
        let why = "the claim took too long or was cancelled".to_owned();
        let end = End::NotStarted { why, retryable: false };
        let over = Over {
            number: claimed.started.attempt,
            end,
            output: Output::default(),
            started_at: claimed.started.at,
            took: claimed.began.elapsed(),
            way: 0,
        };
        Ok(Flow::Settled(self.report(answer, over).await?))
    }

    /// Runs under the record. A try of which nothing began is repeated within the same limit,
    /// unless the record names a process group that a new try would not have.
    async fn run_started(&self, claimed: &Claimed, prepared: Box<dyn Prepared>) -> Over {
        let (number, at) = (claimed.started.attempt, claimed.started.at);
        let limit = claimed.began + self.tool.contract.timeout();
        let ends = at.after(self.tool.contract.timeout());
        let mut ready = prepared;
        let mut tries = 1;
        loop {
            let ended = self.execute(ready, limit).await;
            let over = over(number, ended, at, claimed.began);
            if claimed.started.process_group.is_some()
                || !matches!(over.end, End::NotStarted { .. })
            {
                return over;
            }
            let budget = self.budget(tries, ends, Duration::ZERO);
            let Next::Retry(pause) = after(&self.attempt_of(tries), &over.end, &budget) else {
                return over;
            };
            if self.rest(pause).await != Rested::Over {
                return over;
            }
            tries = tries.saturating_add(1);
            ready = match self.make_ready(self.tool.executor.as_ref(), number, limit).await {
                Ok(ready) => ready,
                Err(_) => return over,
            };
        }
    }

    /// Answers, or checks what an unclear end left behind.
    async fn conclude(&self, claimed: Claimed, over: Over) -> Result<Flow, BusError> {
        let number = over.number;
        let attempt =
            Attempt { retry: Retry { max_attempts: 1, backoff_ms: 0 }, ..self.attempt_of(number) };
        let budget = self.budget(number, claimed.started.at, Duration::ZERO);
        match after(&attempt, &over.end, &budget) {
            Next::Answer(answer) => self.settle(answer, over).await,
            Next::Probe | Next::Retry(_) => self.check(claimed, over).await,
        }
    }

    async fn check(&self, claimed: Claimed, over: Over) -> Result<Flow, BusError> {
        let start = StartState::Started {
            sequence: claimed.sequence,
            started: claimed.started.clone(),
            unused: false,
        };
        let probed = self.probe(Some(&start)).await;
        match &probed {
            Probed::Happened(output) => {
                let answer = effect_found(output);
                return self.settle(answer, over).await;
            }
            Probed::Unclear(_) => {
                return self.settle(doubt::of_start(&claimed.started), over).await;
            }
            Probed::NotHappened => self.sample(&over.end).await,
        }
        let retry = self.tool.contract.retry;
        if self.rest(retry.pause_before(over.number.saturating_add(1))).await == Rested::Draining {
            return Ok(Flow::Settled(Settled::Back(Duration::ZERO)));
        }
        Ok(Flow::Checked { start, probed })
    }
}

/// The answer of a call that was frozen while attempt `attempt` was made ready.
fn frozen(words: String, attempt: u32) -> Answer {
    let made = attempt.saturating_sub(1);
    let earlier = if made > 0 { Earlier::Checked(made) } else { Earlier::None };
    Refusal::Frozen(words).answer(earlier)
}

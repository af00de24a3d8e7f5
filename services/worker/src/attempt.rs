//! Attempts of calls that may be repeated, and what all attempts have in common.

use std::sync::atomic::Ordering;
use std::time::Duration;

use ports::BusError;
use proto::time::Timestamp;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tool_core::answer::Answer;
use tool_core::decide::StartState;
use tool_core::outcome::{Attempt, End, Next, Probed, after};
use tool_core::retry::{Budget, most_jitter};
use tool_core::{doubt, receipt, shape};

use crate::case::{Case, Flow};
use crate::executor::{Ended, Executor, Job, NotStarted, Output, Prepared};
use crate::handling::Settled;

/// An attempt that is over.
pub(crate) struct Over {
    pub(crate) number: u32,
    pub(crate) end: End,
    pub(crate) output: Output,
    pub(crate) started_at: Timestamp,
    pub(crate) took: Duration,
    /// Which of the tool's ways was taken.
    pub(crate) way: u32,
}

/// How a pause between attempts ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rested {
    Over,
    Cancelled,
    Draining,
}

impl Case<'_> {
    /// Runs a call that may be repeated, until an attempt is the last.
    pub(crate) async fn run_repeatable(&self) -> Result<Flow, BusError> {
        let (mut number, mut way, mut tries) = (1, 0, 1);
        loop {
            if self.shared.shutdown.is_draining() {
                return Ok(Flow::Settled(Settled::Back(Duration::ZERO)));
            }
            let over = self.attempt(number, way).await;
            let budget = self.budget(tries, self.call.deadline, self.tool.contract.timeout());
            let pause = match after(&self.attempt_of(tries), &over.end, &budget) {
                Next::Retry(pause) => pause,
                Next::Answer(_) if self.may_go_another_way(&over.end, way, &budget) => {
                    (way, tries) = (way.saturating_add(1), 0);
                    Duration::ZERO
                }
                Next::Answer(answer) => return self.settle(answer, over).await,
                Next::Probe => {
                    let answer = doubt::of_end("the tool ended without a clear result.");
                    return self.settle(answer, over).await;
                }
            };
            self.sample(&over.end).await;
            match self.rest(pause).await {
                Rested::Over => {
                    (number, tries) = (number.saturating_add(1), tries.saturating_add(1));
                }
                Rested::Draining => return Ok(Flow::Settled(Settled::Back(Duration::ZERO))),
                Rested::Cancelled => {
                    let receipt = receipt::between_attempts(self.tool.contract.effect);
                    return self.settle(receipt::cancelled(receipt), over).await;
                }
            }
        }
    }

    pub(crate) async fn settle(&self, answer: Answer, over: Over) -> Result<Flow, BusError> {
        let end = over.end.clone();
        let settled = self.report(answer, over).await?;
        self.sample(&end).await;
        Ok(Flow::Settled(settled))
    }

    /// Whether a tool that did not do has another way to run, and time for it.
    fn may_go_another_way(&self, end: &End, way: u32, budget: &Budget) -> bool {
        let did_not_do = match end {
            End::NotStarted { .. } | End::Crashed { .. } | End::TimedOut => true,
            End::Failed { retryable, .. } => *retryable,
            End::Done | End::Cancelled { .. } => false,
        };
        let ends = budget.now.after(budget.timeout);
        did_not_do
            && !self.cancel.is_cancelled()
            && ends <= budget.deadline
            && self.tool.way(way.saturating_add(1)).is_some()
    }

    async fn attempt(&self, number: u32, way: u32) -> Over {
        let (began, started_at) = (Instant::now(), self.now());
        let limit = began + self.tool.contract.timeout();
        let executor = self.tool.way(way).unwrap_or(&self.tool.executor);
        let ended = match self.make_ready(executor.as_ref(), number, limit).await {
            Ok(prepared) => self.execute(prepared, limit).await,
            Err(not_started) => Ended::NotStarted(not_started),
        };
        Over { way, ..over(number, ended, started_at, began) }
    }

    /// Makes an attempt ready, within its limit and unless it is cancelled.
    pub(crate) async fn make_ready(
        &self,
        executor: &dyn Executor,
        attempt: u32,
        limit: Instant,
    ) -> Result<Box<dyn Prepared>, NotStarted> {
        let job = Job { thread: self.thread.clone(), call: self.call.clone(), attempt };
        let ready = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Err(not_ready("it was cancelled", false)),
            ready = timeout_at(limit, executor.prepare(&job)) => ready,
        };
        ready.unwrap_or_else(|_| Err(not_ready("it was not ready within its time limit", true)))
    }

    /// Runs an attempt that is ready. An executor that does not keep its limit is dropped, which
    /// kills what it started; not at once, because a process that stood still finds every limit
    /// passed, and the tool may long have ended well.
    pub(crate) async fn execute(&self, prepared: Box<dyn Prepared>, limit: Instant) -> Ended {
        let grace = self.shared.config.grace / 2;
        self.sharing.began.store(true, Ordering::Relaxed);
        let mut run = prepared.run(limit, self.cancel.clone());
        let ended = match timeout_at(limit + grace, &mut run).await {
            Ok(ended) => Ok(ended),
            Err(_) => timeout(grace / 2, run).await,
        };
        ended.unwrap_or_else(|_| Ended::TimedOut { output: Output::default() })
    }

    /// Runs the tool's check on the newest start.
    pub(crate) async fn probe(&self, start: Option<&StartState>) -> Probed {
        let Some(executor) = &self.tool.probe else {
            return Probed::Unclear("the tool has no check".to_owned());
        };
        let attempt = match start {
            Some(StartState::Started { started, .. }) => started.attempt,
            Some(StartState::None | StartState::Barred) | None => 1,
        };
        let limit = Instant::now() + self.tool.contract.timeout();
        let job = Job { thread: self.thread.clone(), call: self.call.clone(), attempt };
        // A check changes nothing and tells how a cancelled call came out, so no cancel stops it.
        let ended = match timeout_at(limit, executor.prepare(&job)).await {
            Ok(Ok(prepared)) => {
                let last = limit + self.shared.config.grace / 2;
                let never = tokio_util::sync::CancellationToken::new();
                timeout_at(last, prepared.run(limit, never)).await.ok()
            }
            Ok(Err(not_started)) => Some(Ended::NotStarted(not_started)),
            Err(_) => None,
        };
        let (end, output) = split(ended.unwrap_or(Ended::TimedOut { output: Output::default() }));
        let raw = shape::Raw { bytes: &output.bytes, total: output.total };
        let tokens = self.tool.contract.result_tokens;
        Probed::from_end(
            &end,
            shape::shape(raw, &self.shared.config.redactor, tokens, &shape::Form::default())
                .content,
        )
    }

    pub(crate) fn attempt_of(&self, number: u32) -> Attempt {
        let contract = &self.tool.contract;
        Attempt {
            effect: self.call.terms.effect.max(contract.effect),
            retry: contract.retry,
            number,
            limit: contract.timeout(),
            cancelled: self.cancel.is_cancelled(),
        }
    }

    pub(crate) fn budget(&self, number: u32, deadline: Timestamp, timeout: Duration) -> Budget {
        let most = most_jitter(&self.tool.contract.retry, number.saturating_add(1));
        Budget { now: self.now(), deadline, timeout, jitter: self.shared.ports.ids.jitter(most) }
    }

    pub(crate) async fn rest(&self, pause: Duration) -> Rested {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Rested::Cancelled,
            () = self.shared.shutdown.draining() => Rested::Draining,
            () = sleep(pause) => Rested::Over,
        }
    }
}

fn not_ready(why: &str, retryable: bool) -> NotStarted {
    NotStarted { why: why.to_owned(), retryable }
}

pub(crate) fn over(number: u32, ended: Ended, started_at: Timestamp, began: Instant) -> Over {
    let (end, output) = split(ended);
    Over { number, end, output, started_at, took: began.elapsed(), way: 0 }
}

fn split(ended: Ended) -> (End, Output) {
    match ended {
        Ended::Done(output) => (End::Done, output),
        Ended::Failed { output, why, retryable } => (End::Failed { why, retryable }, output),
        Ended::Crashed { output, why } => (End::Crashed { why }, output),
        Ended::TimedOut { output } => (End::TimedOut, output),
        Ended::Cancelled { output, receipt } => (End::Cancelled { receipt }, output),
        Ended::NotStarted(NotStarted { why, retryable }) => {
            (End::NotStarted { why, retryable }, Output::default())
        }
    }
}

//! What follows the end of an attempt: an answer, another attempt, or a check.

use std::time::Duration;

use proto::error_code::ErrorCode;
use proto::observation::Receipt;
use proto::tool::{Effect, Retry};

use crate::answer::{self, Answer};
use crate::doubt;
use crate::receipt;
use crate::retry::{Budget, pause_after};

/// How an attempt ended. `why` is for the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The tool did what it was asked.
    Done,
    /// The tool ran and says that it failed.
    Failed {
        /// Its reason.
        why: String,
        /// Whether another try may succeed.
        retryable: bool,
    },
    /// It ended by a signal or a fault of its own.
    Crashed {
        /// How.
        why: String,
    },
    /// It was killed at its limit.
    TimedOut,
    /// It was cancelled and is gone.
    Cancelled {
        /// How far it had come.
        receipt: Receipt,
    },
    /// Nothing began: proof that there was no effect.
    NotStarted {
        /// Why.
        why: String,
        /// Whether another try may succeed.
        retryable: bool,
    },
}

impl End {
    /// Whether the tool worked, for its breaker; `None` says nothing about it.
    pub fn sample(&self) -> Option<bool> {
        match self {
            Self::Done | Self::Failed { retryable: false, .. } => Some(true),
            Self::Failed { retryable: true, .. } | Self::Crashed { .. } | Self::TimedOut => {
                Some(false)
            }
            Self::NotStarted { retryable, .. } => retryable.then_some(false),
            Self::Cancelled { .. } => None,
        }
    }
}

/// What follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// The call is answered; on success and failure alike the tool's output follows the content.
    Answer(Answer),
    /// Another attempt after a pause.
    Retry(Duration),
    /// A check has to tell whether the effect happened.
    Probe,
}

/// The attempt that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// What repeating the tool does.
    pub effect: Effect,
    /// Its retries.
    pub retry: Retry,
    /// Which, from 1. Counts tries of this process.
    pub number: u32,
    /// Its limit.
    pub limit: Duration,
    /// Whether a cancel was asked while it ran.
    pub cancelled: bool,
}

/// Decides what follows the end of an attempt.
pub fn after(attempt: &Attempt, end: &End, budget: &Budget) -> Next {
    if let Some(pause) = retry_pause(attempt, end, budget) {
        return Next::Retry(pause);
    }
    if attempt.effect == Effect::Checkable && leaves_doubt(end) {
        return Next::Probe;
    }
    Next::Answer(answer_of(attempt, end))
}

/// A try is repeated when that cannot repeat an effect, the error is one that may pass, and nobody
/// asked to stop.
fn retry_pause(attempt: &Attempt, end: &End, budget: &Budget) -> Option<Duration> {
    let may_pass = match end {
        End::NotStarted { retryable, .. } => *retryable,
        End::Failed { retryable, .. } => *retryable && !attempt.effect.needs_start(),
        End::Crashed { .. } | End::TimedOut => !attempt.effect.needs_start(),
        End::Done | End::Cancelled { .. } => false,
    };
    if !may_pass || attempt.cancelled {
        return None;
    }
    pause_after(&attempt.retry, attempt.number, budget)
}

/// Whether the effect may or may not have happened.
fn leaves_doubt(end: &End) -> bool {
    match end {
        End::Crashed { .. } | End::TimedOut => true,
        End::Failed { retryable, .. } => *retryable,
        End::Cancelled { receipt } => *receipt == Receipt::Unknown,
        End::Done | End::NotStarted { .. } => false,
    }
}

fn answer_of(attempt: &Attempt, end: &End) -> Answer {
    let proves_nothing = attempt.effect == Effect::Irreversible;
    match end {
        End::Done if attempt.cancelled => Answer::result("").with_receipt(Receipt::Completed),
        End::Done => Answer::result(""),
        End::Failed { why, .. } => Answer::failure(ErrorCode::ToolFailed, why.clone()),
        End::Crashed { why } if proves_nothing => {
            doubt::of_end(&format!("the tool crashed ({why})."))
        }
        End::Crashed { why } => Answer::failure(ErrorCode::ToolCrashed, crashed(why)),
        End::TimedOut if proves_nothing => {
            let limit = attempt.limit.as_millis();
            doubt::of_end(&format!(
                "the tool did not end within {limit} ms (`timeout_ms` in its tool file) and was killed."
            ))
        }
        End::TimedOut => answer::timed_out(attempt.limit, attempt.number),
        End::Cancelled { receipt } => {
            receipt::cancelled(receipt::for_effect(attempt.effect, *receipt))
        }
        End::NotStarted { why, .. } => not_started(why),
    }
}

fn crashed(why: &str) -> String {
    format!("The tool crashed: {why}")
}

fn not_started(why: &str) -> Answer {
    let text = format!("The tool could not be started, nothing happened: {why}");
    Answer::failure(ErrorCode::ToolNotStarted, text).with_receipt(Receipt::NeverStarted)
}

/// What a check of a checkable tool found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probed {
    /// The effect is there; what the check said.
    Happened(String),
    /// It is not.
    NotHappened,
    /// The check could not tell.
    Unclear(String),
}

impl Probed {
    /// A check that ends well has found the effect; one that reports a failure has found that it
    /// is missing; all else tells nothing.
    pub fn from_end(end: &End, output: String) -> Self {
        match end {
            End::Done => Self::Happened(output),
            End::Failed { .. } => Self::NotHappened,
            End::Crashed { why } | End::NotStarted { why, .. } => Self::Unclear(why.clone()),
            End::TimedOut => Self::Unclear("the check did not end in time".to_owned()),
            End::Cancelled { .. } => Self::Unclear("the check was cancelled".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;
    use proto::time::Timestamp;

    use super::*;

    fn budget() -> Budget {
        Budget {
            now: Timestamp(0),
            deadline: Timestamp(60_000),
            timeout: Duration::from_secs(3),
            jitter: Duration::ZERO,
        }
    }

    fn attempt(effect: Effect, number: u32) -> Attempt {
        let limit = Duration::from_secs(3);
        Attempt { effect, retry: Retry::default(), number, limit, cancelled: false }
    }

    fn ends() -> [End; 9] {
        [
            End::Done,
            End::Failed { why: "no such unit".into(), retryable: false },
            End::Failed { why: "busy".into(), retryable: true },
            End::Crashed { why: "signal 9".into() },
            End::TimedOut,
            End::Cancelled { receipt: Receipt::StoppedAfterEffectBegan },
            End::Cancelled { receipt: Receipt::Unknown },
            End::NotStarted { why: "no such file".into(), retryable: false },
            End::NotStarted { why: "connection refused".into(), retryable: true },
        ]
    }

    fn line(next: &Next) -> String {
        match next {
            Next::Retry(pause) => format!("retry after {} ms", pause.as_millis()),
            Next::Probe => "probe".into(),
            Next::Answer(answer) => {
                let code = answer.code.map_or("ok", ErrorCode::as_str);
                let receipt = answer.receipt.map_or(String::new(), |r| format!(", {r:?}"));
                format!("{code}{receipt}")
            }
        }
    }

    fn check(effect: Effect, number: u32, expected: &Expect) {
        let rows = ends().map(|end| {
            let next = after(&attempt(effect, number), &end, &budget());
            format!("{end:?} -> {}", line(&next))
        });
        expected.assert_eq(&rows.join("\n"));
    }

    #[test]
    fn a_reading_tool_is_tried_again_after_whatever_may_pass() {
        check(
            Effect::ReadOnly,
            1,
            &expect![[r#"
                Done -> ok
                Failed { why: "no such unit", retryable: false } -> tool_failed
                Failed { why: "busy", retryable: true } -> retry after 500 ms
                Crashed { why: "signal 9" } -> retry after 500 ms
                TimedOut -> retry after 500 ms
                Cancelled { receipt: StoppedAfterEffectBegan } -> cancelled, StoppedBeforeEffect
                Cancelled { receipt: Unknown } -> cancelled, StoppedBeforeEffect
                NotStarted { why: "no such file", retryable: false } -> tool_not_started, NeverStarted
                NotStarted { why: "connection refused", retryable: true } -> retry after 500 ms"#]],
        );
    }

    #[test]
    fn after_the_last_attempt_the_end_is_the_answer() {
        check(
            Effect::Idempotent,
            3,
            &expect![[r#"
                Done -> ok
                Failed { why: "no such unit", retryable: false } -> tool_failed
                Failed { why: "busy", retryable: true } -> tool_failed
                Crashed { why: "signal 9" } -> tool_crashed
                TimedOut -> timed_out
                Cancelled { receipt: StoppedAfterEffectBegan } -> cancelled, StoppedAfterEffectBegan
                Cancelled { receipt: Unknown } -> cancelled, Unknown
                NotStarted { why: "no such file", retryable: false } -> tool_not_started, NeverStarted
                NotStarted { why: "connection refused", retryable: true } -> tool_not_started, NeverStarted"#]],
        );
    }

    #[test]
    fn a_checkable_tool_is_checked_when_its_end_leaves_a_doubt() {
        check(
            Effect::Checkable,
            1,
            &expect![[r#"
                Done -> ok
                Failed { why: "no such unit", retryable: false } -> tool_failed
                Failed { why: "busy", retryable: true } -> probe
                Crashed { why: "signal 9" } -> probe
                TimedOut -> probe
                Cancelled { receipt: StoppedAfterEffectBegan } -> cancelled, StoppedAfterEffectBegan
                Cancelled { receipt: Unknown } -> probe
                NotStarted { why: "no such file", retryable: false } -> tool_not_started, NeverStarted
                NotStarted { why: "connection refused", retryable: true } -> retry after 500 ms"#]],
        );
    }

    #[test]
    fn an_irreversible_tool_is_tried_again_only_when_nothing_began() {
        check(
            Effect::Irreversible,
            1,
            &expect![[r#"
                Done -> ok
                Failed { why: "no such unit", retryable: false } -> tool_failed
                Failed { why: "busy", retryable: true } -> tool_failed
                Crashed { why: "signal 9" } -> in_doubt, Unknown
                TimedOut -> in_doubt, Unknown
                Cancelled { receipt: StoppedAfterEffectBegan } -> cancelled, StoppedAfterEffectBegan
                Cancelled { receipt: Unknown } -> cancelled, Unknown
                NotStarted { why: "no such file", retryable: false } -> tool_not_started, NeverStarted
                NotStarted { why: "connection refused", retryable: true } -> retry after 500 ms"#]],
        );
    }

    #[test]
    fn a_result_that_outran_its_cancel_says_so() {
        let cancelled = Attempt { cancelled: true, ..attempt(Effect::Irreversible, 1) };
        let next = after(&cancelled, &End::Done, &budget());
        assert_eq!(next, Next::Answer(Answer::result("").with_receipt(Receipt::Completed)));
    }

    #[test]
    fn a_check_that_reports_a_failure_has_found_that_nothing_happened() {
        let found = ends().map(|end| Probed::from_end(&end, "active".into()));
        let (happened, not) = (Probed::Happened("active".into()), Probed::NotHappened);
        assert_eq!(found[..3], [happened, not.clone(), not]);
        assert!(found[3..].iter().all(|probed| matches!(probed, Probed::Unclear(_))));
    }

    proptest! {
        #[test]
        fn an_effect_that_may_have_begun_is_never_simply_repeated(
            which in 0..9_usize, number in 1..6_u32, irreversible in any::<bool>(),
        ) {
            let effect = if irreversible { Effect::Irreversible } else { Effect::Checkable };
            let end = ends()[which].clone();
            let retried = matches!(after(&attempt(effect, number), &end, &budget()), Next::Retry(_));
            let nothing_began = matches!(end, End::NotStarted { retryable: true, .. });
            prop_assert!(!retried || nothing_began);
        }

        #[test]
        fn nothing_is_tried_again_after_a_cancel(which in 0..9_usize) {
            let cancelled = Attempt { cancelled: true, ..attempt(Effect::ReadOnly, 1) };
            let next = after(&cancelled, &ends()[which], &budget());
            let is_answer = matches!(next, Next::Answer(_));
            prop_assert!(is_answer);
        }
    }
}

//! Pauses between attempts: exponential, with jitter, never past the call's end.

use std::time::Duration;

use proto::time::Timestamp;
use proto::tool::Retry;

/// The most that chance adds to the pause before `attempt`: half of the pause.
pub fn most_jitter(retry: &Retry, attempt: u32) -> Duration {
    retry.pause_before(attempt) / 2
}

/// What bounds another attempt of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Server time.
    pub now: Timestamp,
    /// When all attempts have to be over.
    pub deadline: Timestamp,
    /// How much of that another attempt needs.
    pub timeout: Duration,
    /// Drawn from zero to [`most_jitter`] of the next attempt.
    pub jitter: Duration,
}

/// The pause before the attempt after `attempt`, or `None` when there may be none: the attempts are
/// used up, or the next one could not end before the call is closed.
pub fn pause_after(retry: &Retry, attempt: u32, budget: &Budget) -> Option<Duration> {
    let next = attempt.saturating_add(1);
    if next > retry.max_attempts.max(1) {
        return None;
    }
    let pause =
        retry.pause_before(next).saturating_add(budget.jitter.min(most_jitter(retry, next)));
    let ends = budget.now.after(pause).after(budget.timeout);
    (ends <= budget.deadline).then_some(pause)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RETRY: Retry = Retry { max_attempts: 4, backoff_ms: 500 };

    fn budget(jitter: u64) -> Budget {
        Budget {
            now: Timestamp(0),
            deadline: Timestamp(100_000),
            timeout: Duration::from_secs(3),
            jitter: Duration::from_millis(jitter),
        }
    }

    #[test]
    fn pauses_double_and_end_with_the_attempts() {
        let pauses = [1, 2, 3, 4].map(|attempt| pause_after(&RETRY, attempt, &budget(0)));
        let ms = Duration::from_millis;
        assert_eq!(pauses, [Some(ms(500)), Some(ms(1000)), Some(ms(2000)), None]);
    }

    #[test]
    fn jitter_adds_at_most_half_a_pause() {
        let pauses = [0, 100, 10_000].map(|jitter| pause_after(&RETRY, 1, &budget(jitter)));
        assert_eq!(pauses, [500, 600, 750].map(|ms| Some(Duration::from_millis(ms))));
    }

    #[test]
    fn an_attempt_that_would_outlast_the_call_is_not_made() {
        let late = Budget { now: Timestamp(97_000), ..budget(0) };
        assert_eq!(pause_after(&RETRY, 1, &late), None);
    }

    proptest! {
        #[test]
        fn the_number_of_attempts_is_bounded(max in 0..20_u32, backoff in 0..10_000_u64) {
            let retry = Retry { max_attempts: max, backoff_ms: backoff };
            let endless = Budget { deadline: Timestamp(i64::MAX), ..budget(0) };
            let made = (1..100).take_while(|made| {
                *made == 1 || pause_after(&retry, made - 1, &endless).is_some()
            });
            prop_assert_eq!(made.count(), usize::try_from(max.max(1)).unwrap());
        }

        #[test]
        fn no_attempt_outlasts_the_call(
            now in 0..200_000_i64, attempt in 1..5_u32, jitter in 0..5_000_u64,
        ) {
            let budget = Budget { now: Timestamp(now), ..budget(jitter) };
            if let Some(pause) = pause_after(&RETRY, attempt, &budget) {
                prop_assert!(budget.now.after(pause).after(budget.timeout) <= budget.deadline);
            }
        }
    }
}

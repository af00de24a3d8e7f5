//! A tool that keeps failing is not tried for a while; all workers of the tool share the samples.

use std::collections::VecDeque;
use std::time::Duration;

use proto::time::Timestamp;

/// How far back samples count.
pub const WINDOW: Duration = Duration::from_mins(5);
/// How long an open breaker rests before one call may probe.
pub const REST: Duration = Duration::from_secs(30);
/// Fewer calls prove nothing.
const ENOUGH_CALLS: usize = 10;
/// Opens from this share of failures on.
const FAILED_PERCENT: usize = 60;

/// One call's outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When.
    pub at: Timestamp,
    /// Whether the tool worked.
    pub ok: bool,
}

/// Whether a call may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breaker {
    /// Yes.
    Closed,
    /// No.
    Open {
        /// Since when.
        since: Timestamp,
    },
    /// One call may, to find out; whoever takes the probe.
    HalfOpen,
}

/// The state after `samples`, oldest first, at `now`.
pub fn judge(samples: &[Sample], now: Timestamp) -> Breaker {
    let mut state = Folded::default();
    for sample in samples {
        state.push(*sample);
    }
    state.forget_before(now.before(WINDOW));
    match state.open_since {
        Some(since) if now.since(since) >= WINDOW => Breaker::Closed,
        Some(since) if now.since(since) >= REST => Breaker::HalfOpen,
        Some(since) => Breaker::Open { since },
        None => Breaker::Closed,
    }
}

#[derive(Debug, Default)]
struct Folded {
    window: VecDeque<Sample>,
    /// Failures in the window, counted along: every call asks, and the window may hold thousands.
    failed: usize,
    open_since: Option<Timestamp>,
}

impl Folded {
    fn push(&mut self, sample: Sample) {
        match self.open_since {
            // Calls that were under way when it opened say nothing about the tool's recovery.
            Some(since) if sample.at.since(since) < REST => {}
            Some(_) if sample.ok => *self = Self::default(),
            Some(_) => self.open_since = Some(sample.at),
            None => self.count(sample),
        }
    }

    fn count(&mut self, sample: Sample) {
        self.forget_before(sample.at.before(WINDOW));
        self.window.push_back(sample);
        self.failed = self.failed.saturating_add(usize::from(!sample.ok));
        let calls = self.window.len();
        let many = self.failed.saturating_mul(100) >= calls.saturating_mul(FAILED_PERCENT);
        if calls >= ENOUGH_CALLS && many {
            self.open_since = Some(sample.at);
        }
    }

    fn forget_before(&mut self, oldest: Timestamp) {
        while let Some(sample) = self.window.pop_front_if(|sample| sample.at <= oldest) {
            self.failed = self.failed.saturating_sub(usize::from(!sample.ok));
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    /// `+` worked, `-` failed, one a second; `_` ten seconds of silence. Judged a second later.
    fn check(story: &str, expected: &Expect) {
        let mut at = 0;
        let mut samples = Vec::new();
        for letter in story.chars() {
            at += if letter == '_' { 10_000 } else { 1_000 };
            if letter != '_' {
                samples.push(Sample { at: Timestamp(at), ok: letter == '+' });
            }
        }
        expected.assert_eq(&format!("{:?}", judge(&samples, Timestamp(at + 1_000))));
    }

    #[test]
    fn nine_failures_prove_nothing() {
        check("---------", &expect!["Closed"]);
    }

    #[test]
    fn six_failures_of_ten_open_it() {
        check("++++------", &expect!["Open { since: Timestamp(10000) }"]);
    }

    #[test]
    fn five_failures_of_ten_do_not() {
        check("+++++-----", &expect!["Closed"]);
    }

    #[test]
    fn after_a_rest_one_call_may_probe() {
        check("----------___", &expect!["HalfOpen"]);
    }

    #[test]
    fn a_probe_that_works_closes_it() {
        check("----------___+", &expect!["Closed"]);
    }

    #[test]
    fn a_probe_that_fails_opens_it_again() {
        check("----------___-", &expect!["Open { since: Timestamp(41000) }"]);
    }

    #[test]
    fn a_straggler_does_not_close_it() {
        check("----------_+", &expect!["Open { since: Timestamp(10000) }"]);
    }

    #[test]
    fn old_failures_fall_out_of_the_window() {
        check("---------______________________________-", &expect!["Closed"]);
    }

    proptest! {
        #[test]
        fn it_opens_exactly_from_sixty_percent_of_ten_on(
            oks in prop::collection::vec(any::<bool>(), 1..40),
        ) {
            let samples: Vec<Sample> = (0_i64..).zip(&oks)
                .map(|(second, ok)| Sample { at: Timestamp(second * 100), ok: *ok }).collect();
            let trips = (1..=samples.len()).any(|count| {
                let failed = oks[..count].iter().filter(|ok| !**ok).count();
                count >= 10 && failed * 100 >= count * 60
            });
            let now = samples.last().unwrap().at;
            let is_open = matches!(judge(&samples, now), Breaker::Open { .. });
            prop_assert_eq!(is_open, trips);
        }

        #[test]
        fn a_quiet_window_closes_it(oks in prop::collection::vec(any::<bool>(), 0..40)) {
            let samples: Vec<Sample> = (0_i64..).zip(&oks)
                .map(|(second, ok)| Sample { at: Timestamp(second * 100), ok: *ok }).collect();
            let now = Timestamp(4_000).after(WINDOW);
            prop_assert_eq!(judge(&samples, now), Breaker::Closed);
        }
    }
}

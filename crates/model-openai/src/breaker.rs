//! An endpoint that keeps failing is left alone for a while, so that the next one is asked at once
//! and the first is not held down by whoever asks again. Pure: the time is an argument.

use std::time::Duration;

use proto::model::{ModelError, ModelErrorKind};
use tokio::time::Instant;

/// Failures in a row that prove something.
const ENOUGH: u32 = 5;
/// The first rest; it doubles with each probe that fails.
const REST: Duration = Duration::from_secs(5);
const LONGEST_REST: Duration = Duration::from_mins(1);
/// How long a probe may be out before another one may go: its asker may be gone.
const PROBE: Duration = Duration::from_secs(30);
/// How soon to look again while a probe is out.
const SOON: Duration = Duration::from_millis(250);

/// What is known of one endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Breaker {
    failures: u32,
    rest: Option<Rest>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rest {
    until: Instant,
    length: Duration,
    probed: Option<Instant>,
}

/// What an outcome changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Nothing that anybody has to know.
    None,
    /// It rests for this long.
    Opened(Duration),
    /// It works again.
    Closed,
}

impl Breaker {
    /// Lets a request through, or says how long to leave the endpoint alone. After a rest one goes
    /// through, to find out.
    pub(crate) fn admit(&mut self, now: Instant) -> Result<(), Duration> {
        let Some(rest) = &mut self.rest else { return Ok(()) };
        if now < rest.until {
            return Err(rest.until.saturating_duration_since(now));
        }
        let is_out = |probed: Instant| now.saturating_duration_since(probed) < PROBE;
        if rest.probed.is_some_and(is_out) {
            return Err(SOON);
        }
        rest.probed = Some(now);
        Ok(())
    }

    /// The endpoint answered; what it answered does not matter.
    pub(crate) fn answered(&mut self) -> Change {
        let rested = self.rest.is_some();
        *self = Self::default();
        if rested { Change::Closed } else { Change::None }
    }

    /// The endpoint failed.
    pub(crate) fn failed(&mut self, now: Instant) -> Change {
        self.failures = self.failures.saturating_add(1);
        let length = match self.rest {
            None if self.failures < ENOUGH => return Change::None,
            None => REST,
            // Requests that were under way when it opened say nothing new.
            Some(rest) if rest.probed.is_none() => return Change::None,
            Some(rest) => rest.length.saturating_mul(2).min(LONGEST_REST),
        };
        self.rest = Some(Rest { until: now + length, length, probed: None });
        Change::Opened(length)
    }
}

/// Whether an error says that the endpoint is in trouble, and not only this request: a refusal comes
/// from one that works.
pub(crate) fn is_trouble(error: &ModelError) -> bool {
    match error.kind {
        ModelErrorKind::Network
        | ModelErrorKind::Timeout(_)
        | ModelErrorKind::Truncated
        | ModelErrorKind::BadResponse => true,
        ModelErrorKind::HttpError => error.status.is_some_and(|status| status >= 500),
        ModelErrorKind::ProviderError
        | ModelErrorKind::Length
        | ModelErrorKind::ContentFilter
        | ModelErrorKind::EmptyResponse
        | ModelErrorKind::MalformedChunk
        | ModelErrorKind::ContractViolation => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(now: Instant) -> Breaker {
        let mut breaker = Breaker::default();
        for _ in 1..ENOUGH {
            assert_eq!(breaker.failed(now), Change::None);
        }
        assert_eq!(breaker.failed(now), Change::Opened(REST));
        breaker
    }

    #[tokio::test]
    async fn failures_in_a_row_open_it_and_an_answer_between_them_does_not() {
        let now = Instant::now();
        let mut breaker = Breaker::default();
        for _ in 0..3 * ENOUGH {
            assert_eq!(breaker.failed(now), Change::None);
            assert_eq!(breaker.answered(), Change::None);
        }
        let mut breaker = open(now);
        assert_eq!(breaker.admit(now + REST / 4), Err(REST * 3 / 4));
    }

    #[tokio::test]
    async fn after_a_rest_one_request_finds_out_and_the_others_wait() {
        let now = Instant::now();
        let mut breaker = open(now);
        let rested = now + REST;
        assert_eq!(breaker.admit(rested), Ok(()));
        assert_eq!(breaker.admit(rested), Err(SOON));
        assert_eq!(breaker.failed(rested), Change::Opened(REST * 2));
        let rested = rested + REST * 2;
        assert_eq!(breaker.admit(rested), Ok(()));
        assert_eq!(breaker.answered(), Change::Closed);
        assert_eq!(breaker, Breaker::default());
    }

    #[tokio::test]
    async fn a_probe_whose_asker_is_gone_does_not_keep_it_open() {
        let now = Instant::now();
        let mut breaker = open(now);
        assert_eq!(breaker.admit(now + REST), Ok(()));
        assert_eq!(breaker.admit(now + REST + PROBE), Ok(()));
    }

    #[tokio::test]
    async fn requests_that_were_under_way_do_not_lengthen_a_rest() {
        let now = Instant::now();
        let mut breaker = open(now);
        let before = breaker.rest;
        assert_eq!(breaker.failed(now + Duration::from_secs(1)), Change::None);
        assert_eq!(breaker.rest, before);
    }

    #[tokio::test]
    async fn a_rest_has_a_longest() {
        let mut now = Instant::now();
        let mut breaker = open(now);
        for _ in 0..10 {
            now += LONGEST_REST;
            assert_eq!(breaker.admit(now), Ok(()));
            assert!(matches!(breaker.failed(now), Change::Opened(rest) if rest <= LONGEST_REST));
        }
    }
}

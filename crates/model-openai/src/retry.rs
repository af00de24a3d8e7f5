//! Whether and when a request is made again.

use std::time::{Duration, SystemTime};

use proto::model::{ModelError, ModelErrorKind};
use proto::time::Timestamp;

use crate::endpoint::Patience;

/// How long a `Retry-After` header asks to wait: seconds, or a date. The date is compared with the
/// server's own when it sent one, since a process may not trust its clock.
pub(crate) fn retry_after(value: &str, date: Option<&str>, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let until = httpdate::parse_http_date(value).ok()?;
    let own = SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(now.0).unwrap_or(0));
    let from = date.and_then(|date| httpdate::parse_http_date(date).ok()).unwrap_or(own);
    Some(until.duration_since(from).unwrap_or_default())
}

/// The pause before the next request; none when another one is of no use. `attempt` counts from 1.
pub(crate) fn pause(
    error: &ModelError,
    attempt: u32,
    patience: &Patience,
    jitter: &dyn Fn(Duration) -> Duration,
) -> Option<Duration> {
    if attempt >= patience.attempts || !error.retryable || !is_worth_repeating(error.kind) {
        return None;
    }
    let factor = 2_u32.saturating_pow(attempt.saturating_sub(1));
    let own = patience.backoff.saturating_mul(factor).min(patience.longest_wait);
    let own = own.saturating_add(jitter(own));
    match error.retry_after {
        Some(asked) if asked > patience.longest_wait => None,
        Some(asked) => Some(asked.saturating_add(jitter(patience.backoff))),
        None => Some(own),
    }
}

/// A reply that ended as it wanted to end would end so again, and one that was waited for in vain
/// has used its time.
fn is_worth_repeating(kind: ModelErrorKind) -> bool {
    match kind {
        ModelErrorKind::ProviderError
        | ModelErrorKind::HttpError
        | ModelErrorKind::Network
        | ModelErrorKind::Truncated
        | ModelErrorKind::EmptyResponse
        | ModelErrorKind::MalformedChunk
        | ModelErrorKind::BadResponse => true,
        ModelErrorKind::Timeout(_)
        | ModelErrorKind::Length
        | ModelErrorKind::ContentFilter
        | ModelErrorKind::ContractViolation => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(kind: ModelErrorKind, retry_after: Option<u64>) -> ModelError {
        ModelError {
            kind,
            retryable: true,
            retry_after: retry_after.map(Duration::from_secs),
            status: None,
            message: String::new(),
            code: None,
        }
    }

    fn pause_of(error: &ModelError, attempt: u32) -> Option<u128> {
        let longest_wait = Duration::from_secs(10);
        let patience = Patience { attempts: 3, backoff: Duration::from_millis(100), longest_wait };
        pause(error, attempt, &patience, &|_| Duration::from_millis(1)).map(|span| span.as_millis())
    }

    #[test]
    fn pauses_double_and_end() {
        let busy = error(ModelErrorKind::HttpError, None);
        let pauses: Vec<_> = (1..=3).map(|attempt| pause_of(&busy, attempt)).collect();
        assert_eq!(pauses, [Some(101), Some(201), None]);
    }

    #[test]
    fn a_wait_that_is_asked_for_is_kept_unless_it_is_too_long() {
        assert_eq!(pause_of(&error(ModelErrorKind::HttpError, Some(2)), 1), Some(2001));
        assert_eq!(pause_of(&error(ModelErrorKind::HttpError, Some(86_400)), 1), None);
    }

    #[test]
    fn what_would_end_the_same_is_not_repeated() {
        assert_eq!(pause_of(&error(ModelErrorKind::Length, None), 1), None);
        let final_error = ModelError { retryable: false, ..error(ModelErrorKind::HttpError, None) };
        assert_eq!(pause_of(&final_error, 1), None);
    }

    #[test]
    fn a_date_is_compared_with_the_servers_own() {
        let until = "Thu, 01 Jan 2026 00:00:02 GMT";
        let date = Some("Thu, 01 Jan 2026 00:00:00 GMT");
        assert_eq!(retry_after(until, date, Timestamp(0)), Some(Duration::from_secs(2)));
        let now = Timestamp(1_767_225_601_000);
        assert_eq!(retry_after(until, None, now), Some(Duration::from_secs(1)));
        assert_eq!(retry_after("7", None, now), Some(Duration::from_secs(7)));
        assert_eq!(retry_after("soon", None, now), None);
    }
}

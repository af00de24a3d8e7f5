//! A server that asks to be left alone for a while.

use std::time::Duration;

use reqwest::header::{HeaderMap, RETRY_AFTER};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// Until when a tool waits before it asks again, shared by all its calls.
#[derive(Debug)]
pub(super) struct Wait(watch::Sender<Option<Instant>>);

impl Default for Wait {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl Wait {
    pub(super) fn until(&self, instant: Instant) {
        self.0.send_if_modified(|until| {
            let is_later = until.is_none_or(|until| until < instant);
            *until = Some(until.map_or(instant, |until| until.max(instant)));
            is_later
        });
    }

    /// Returns when the wait is over.
    pub(super) async fn over(&self) {
        let until = *self.0.borrow();
        if let Some(until) = until {
            sleep_until(until).await;
        }
    }
}

/// How long the server asks to wait. Dates are not read: they need a clock that both agree on.
pub(super) fn asked(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?;
    text.trim().parse().ok().map(Duration::from_secs)
}

//! A wall clock that is wrong on purpose, off unless it is asked for: a drill shows that nothing
//! depends on the clocks of the processes.

use std::sync::Arc;

use ports::clock::Clock;
use proto::time::Timestamp;

use crate::failure::Failure;
use crate::settings::Environment;

/// The variable that puts this process's clock ahead by so many seconds, or behind: `300`, `-300`.
pub(crate) const VARIABLE: &str = "SYSTOLE_CLOCK_SKEW_S";
/// A clock that is further off is a slip of the pen.
const MOST_S: i64 = 86_400;

/// How far the clock is ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Skew {
    ahead_ms: i64,
}

impl Skew {
    /// What the environment asks for.
    pub(crate) fn of(environment: &Environment) -> Result<Self, Failure> {
        let asked = environment.text(VARIABLE);
        Self::read(asked.as_deref()).map_err(|why| Failure::settings(vec![why]))
    }

    fn read(text: Option<&str>) -> Result<Self, String> {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(Self::default()) };
        let seconds: i64 = text.parse().unwrap_or(i64::MAX);
        if (-MOST_S..=MOST_S).contains(&seconds) {
            return Ok(Self { ahead_ms: seconds.saturating_mul(1000) });
        }
        Err(format!("{VARIABLE}: `{text}` is no number of seconds from -{MOST_S} to {MOST_S}"))
    }

    /// The clock as this process sees it.
    pub(crate) fn on(self, clock: Arc<dyn Clock>) -> Arc<dyn Clock> {
        if self == Self::default() {
            return clock;
        }
        tracing::warn!(ahead_ms = self.ahead_ms, "this process's clock is wrong on purpose");
        Arc::new(Skewed { clock, ahead_ms: self.ahead_ms })
    }
}

struct Skewed {
    clock: Arc<dyn Clock>,
    ahead_ms: i64,
}

impl Clock for Skewed {
    fn now(&self) -> Timestamp {
        Timestamp(self.clock.now().0.saturating_add(self.ahead_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Still;

    impl Clock for Still {
        fn now(&self) -> Timestamp {
            Timestamp(1_000_000)
        }
    }

    fn seen(text: Option<&str>) -> Result<i64, String> {
        Ok(Skew::read(text)?.on(Arc::new(Still)).now().0)
    }

    #[test]
    fn a_clock_is_right_unless_it_is_asked_to_be_wrong() {
        assert_eq!(seen(None), Ok(1_000_000));
        assert_eq!(seen(Some("")), Ok(1_000_000));
        assert_eq!(seen(Some("300")), Ok(1_300_000));
        assert_eq!(seen(Some("-300")), Ok(700_000));
        assert!(seen(Some("soon")).unwrap_err().contains("`soon`"));
        assert!(seen(Some("86401")).unwrap_err().contains(VARIABLE));
    }
}

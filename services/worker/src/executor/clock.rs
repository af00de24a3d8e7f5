//! The `clock` builtin.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use ports::clock::Clock;
use proto::observation::Receipt;
use proto::time::Timestamp;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Ended, Executor, Job, NotStarted, Output, Prepared};

/// Tells the time.
pub(super) struct ClockTool {
    clock: Arc<dyn Clock>,
}

impl ClockTool {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock }
    }
}

#[async_trait]
impl Executor for ClockTool {
    async fn prepare(&self, _: &Job) -> Result<Box<dyn Prepared>, NotStarted> {
        Ok(Box::new(Reading { clock: Arc::clone(&self.clock) }))
    }
}

struct Reading {
    clock: Arc<dyn Clock>,
}

#[async_trait]
impl Prepared for Reading {
    fn process_group(&self) -> Option<i32> {
        None
    }

    async fn run(self: Box<Self>, _: Instant, cancel: CancellationToken) -> Ended {
        if cancel.is_cancelled() {
            let receipt = Receipt::StoppedBeforeEffect;
            return Ended::Cancelled { output: Output::default(), receipt };
        }
        Ended::Done(Output::from(utc(self.clock.now())))
    }
}

impl From<String> for Output {
    fn from(text: String) -> Self {
        let bytes = Bytes::from(text);
        Self { total: u64::try_from(bytes.len()).unwrap_or(u64::MAX), bytes }
    }
}

/// The time as `2026-01-31T23:59:59Z`, with the day of the week, which models guess wrong.
fn utc(now: Timestamp) -> String {
    let seconds = now.0.div_euclid(1000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = date(days);
    let (hour, minute) = (second / 3600, second / 60 % 60);
    let second = second % 60;
    let weekday = match days.rem_euclid(7) {
        0 => "Thursday",
        1 => "Friday",
        2 => "Saturday",
        3 => "Sunday",
        4 => "Monday",
        5 => "Tuesday",
        _ => "Wednesday",
    };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z, {weekday}")
}

/// Year, month, day from days since 1970-01-01: years begin in March, so that the leap day is the
/// last, and are counted in eras of 400 years, which all have the same length.
fn date(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_utc() {
        let known = [
            (0, "1970-01-01T00:00:00Z, Thursday"),
            (-1, "1969-12-31T23:59:59Z, Wednesday"),
            (951_782_399_999, "2000-02-28T23:59:59Z, Monday"),
            (951_868_799_000, "2000-02-29T23:59:59Z, Tuesday"),
            (1_709_164_800_000, "2024-02-29T00:00:00Z, Thursday"),
            (4_107_542_400_000, "2100-03-01T00:00:00Z, Monday"),
        ];
        for (millis, text) in known {
            assert_eq!(utc(Timestamp(millis)), text);
        }
    }
}

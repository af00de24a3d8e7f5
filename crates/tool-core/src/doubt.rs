//! What is said when nobody can prove whether an effect happened: when, where, until when.

use proto::call::Started;
use proto::error_code::ErrorCode;
use proto::ids::InstanceId;
use proto::observation::Receipt;
use proto::time::Timestamp;

use crate::answer::Answer;

/// An attempt began elsewhere and left no result.
pub fn of_start(started: &Started) -> Answer {
    let text = format!(
        "IN DOUBT: attempt {} began on host {} (worker {}) at {} and left no result. Its effect may \
         have happened. It could land until {}. Check the real state before you repeat the call.",
        started.attempt,
        started.host,
        started.worker,
        utc(started.at),
        utc(started.until),
    );
    in_doubt(text)
}

/// Another worker had begun the call, and the journal has lost the record of that.
pub fn of_lost_start(worker: &InstanceId) -> Answer {
    in_doubt(format!(
        "IN DOUBT: worker {worker} had begun this call; the record of it was lost. Its effect may have \
         happened. Check the real state before you repeat the call."
    ))
}

/// An attempt of this worker ended without proof of its effect; `what` tells how.
pub fn of_end(what: &str) -> Answer {
    in_doubt(format!(
        "IN DOUBT: {what} Its effect may have happened before that. The attempt is over here; what \
         it had sent out or let loose may still act. Check the real state before you repeat the call."
    ))
}

fn in_doubt(text: String) -> Answer {
    Answer::failure(ErrorCode::InDoubt, text).with_receipt(Receipt::Unknown)
}

/// An instant as people read it, such as `2026-03-01T12:00:00Z`.
pub fn utc(at: Timestamp) -> String {
    let seconds = at.0.div_euclid(1000);
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The date of a day since 1970, after Howard Hinnant's `civil_from_days`.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days.saturating_add(719_468);
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use proptest::prelude::*;

    use super::*;
    use crate::fixtures::started;

    #[test]
    fn a_doubt_says_when_where_and_until_when() {
        let answer =
            of_start(&started(1, Timestamp(1_772_366_400_000), Timestamp(1_772_366_420_000)));
        expect![[r#"
            Answer {
                code: Some(
                    InDoubt,
                ),
                content: "IN DOUBT: attempt 1 began on host far (worker w2) at 2026-03-01T12:00:00Z and left no result. Its effect may have happened. It could land until 2026-03-01T12:00:20Z. Check the real state before you repeat the call.",
                receipt: Some(
                    Unknown,
                ),
            }
        "#]]
        .assert_debug_eq(&answer);
    }

    #[test]
    fn known_instants_are_printed_as_known() {
        let known = [0, 951_782_400_000, 4_102_444_799_999, -1_000].map(Timestamp).map(utc);
        let expected = [
            "1970-01-01T00:00:00Z",
            "2000-02-29T00:00:00Z",
            "2099-12-31T23:59:59Z",
            "1969-12-31T23:59:59Z",
        ];
        assert_eq!(known, expected);
    }

    proptest! {
        #[test]
        fn later_instants_read_later(a in 0..=4_102_444_800_i64, b in 0..=4_102_444_800_i64) {
            let (first, last) = (a.min(b), a.max(b));
            prop_assert!(utc(Timestamp(first * 1000)) <= utc(Timestamp(last * 1000)));
        }
    }
}

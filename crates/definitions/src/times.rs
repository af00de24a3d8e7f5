//! Timeouts and retries in the forms that tool files have.

use proto::tool::Retry;

use crate::fields::Fields;
use crate::problem::Report;
use crate::yaml::{Kind, Place};

pub(crate) const DAY_MS: u64 = 24 * 60 * 60 * 1000;
const MOST_ATTEMPTS: u64 = 20;

#[derive(Clone, Copy)]
pub(crate) enum Unit {
    Millis,
    Seconds,
}

/// The limit of an attempt: `None` when the file has none, `Some(None)` when it is wrong.
#[expect(clippy::option_option, reason = "absent and wrong are different answers")]
pub(crate) fn timeout(fields: &mut Fields<'_>, report: &mut Report) -> Option<Option<u64>> {
    let names = [
        ("timeout_ms", Unit::Millis),
        ("timeout", Unit::Millis),
        ("timeout_seconds", Unit::Seconds),
        ("timeout_s", Unit::Seconds),
    ];
    let (unit, at) = fields.either(&names, report)?;
    Some(span(&at, unit, 1, report))
}

/// Attempts and pauses.
pub(crate) fn retry(fields: &mut Fields<'_>, report: &mut Report) -> Option<Retry> {
    let names = [("retry", true), ("retry_policy", true), ("max_retries", false)];
    match fields.either(&names, report) {
        None => Some(Retry::default()),
        Some((true, at)) => policy(&at, report),
        Some((false, at)) => {
            let retries = at.whole(0, MOST_ATTEMPTS.saturating_sub(1), report)?;
            Some(Retry { max_attempts: attempts(retries.saturating_add(1)), ..Retry::default() })
        }
    }
}

fn policy(at: &Place<'_>, report: &mut Report) -> Option<Retry> {
    let mut fields = Fields::of(at, report)?;
    let names = [("max_attempts", 0), ("attempts", 0), ("max_retries", 1)];
    let max_attempts = match fields.either(&names, report) {
        None => Some(Retry::default().max_attempts),
        Some((more, at)) => {
            let least = 1_u64.saturating_sub(more);
            let number = at.whole(least, MOST_ATTEMPTS.saturating_sub(more), report);
            number.map(|number| attempts(number.saturating_add(more)))
        }
    };
    let pause = backoff(&mut fields, report);
    fields.close(report);
    Some(Retry { max_attempts: max_attempts?, backoff_ms: pause? })
}

fn attempts(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The pause before the second try, or the word for what is done anyway.
fn backoff(fields: &mut Fields<'_>, report: &mut Report) -> Option<u64> {
    let names = [
        ("backoff_ms", Unit::Millis),
        ("backoff", Unit::Millis),
        ("backoff_seconds", Unit::Seconds),
        ("initial_delay_ms", Unit::Millis),
    ];
    match fields.either(&names, report) {
        None => Some(Retry::default().backoff_ms),
        Some((_, at)) if at.node().as_text() == Some("exponential") => {
            Some(Retry::default().backoff_ms)
        }
        Some((unit, at)) => span(&at, unit, 0, report),
    }
}

/// A span as a number in its unit, or with a unit of its own: `1500`, `1.5s`, `500ms`, `2m`.
pub(crate) fn span(at: &Place<'_>, unit: Unit, least: u64, report: &mut Report) -> Option<u64> {
    let millis = match &at.node().kind {
        Kind::Number(number) => match unit {
            Unit::Millis => number.as_u64(),
            Unit::Seconds => number.as_f64().and_then(|seconds| whole(seconds * 1000.0)),
        },
        Kind::Text(text) => with_unit(text),
        Kind::Null | Kind::Bool(_) | Kind::List(_) | Kind::Map(_) => None,
    };
    let millis = millis.filter(|millis| (least..=DAY_MS).contains(millis));
    if millis.is_none() {
        let (expected, fix) = match unit {
            Unit::Millis => {
                ("milliseconds, at most a day", "write a whole number such as 3000, or 3s")
            }
            Unit::Seconds => ("seconds, at most a day", "write a number such as 3 or 1.5"),
        };
        report.wrong(at, expected, fix);
    }
    millis
}

pub(crate) fn with_unit(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at_checked(end)?;
    let factor = match unit.trim() {
        "ms" => 1.0,
        "s" => 1000.0,
        "m" | "min" => 60_000.0,
        "h" => 3_600_000.0,
        _ => return None,
    };
    whole(number.parse::<f64>().ok()? * factor)
}

/// A number of milliseconds without its fraction.
fn whole(number: f64) -> Option<u64> {
    if !number.is_finite() || number < 0.0 {
        return None;
    }
    format!("{number:.0}").parse().ok()
}

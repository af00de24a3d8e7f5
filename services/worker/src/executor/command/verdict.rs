//! From what a process did to how the attempt ended.

use proto::observation::Receipt;

use super::super::guard::wire::Report;
use super::super::{Ended, NotStarted, Output};

/// The exit code by which a tool says that another try may succeed: `EX_TEMPFAIL`.
const TRY_AGAIN: i32 = 75;

/// Why a worker ended an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// Its deadline passed.
    Late,
    /// It was cancelled.
    Cancelled,
}

/// What is known of a process that was released.
#[derive(Debug)]
pub(super) struct End {
    /// Why it was ended, if it was.
    pub(super) stop: Option<Stop>,
    /// How it ended; `None` when its guard is gone too.
    pub(super) report: Option<Report>,
}

/// A process that ended by itself did so, even while it was being stopped: its own word counts.
pub(super) fn verdict(end: End, output: Output, errors: &Output) -> Ended {
    match (end.report, end.stop) {
        (Some(Report::Refused { why, retryable }), _) => {
            Ended::NotStarted(NotStarted { why, retryable })
        }
        (Some(Report::Exited(0)), _) => Ended::Done(output),
        (Some(Report::Exited(code)), _) => {
            let why = format!("the tool ended with exit code {code}{}", said(errors));
            Ended::Failed { output, why, retryable: code == TRY_AGAIN }
        }
        (_, Some(Stop::Late)) => Ended::TimedOut { output },
        (_, Some(Stop::Cancelled)) => {
            Ended::Cancelled { output, receipt: Receipt::StoppedAfterEffectBegan }
        }
        (Some(Report::Killed(signal)), None) => {
            let why = format!("the tool was ended by {}{}", name(signal), said(errors));
            Ended::Crashed { output, why }
        }
        (Some(Report::Ready(_)) | None, None) => {
            let why = format!("the tool's guard process was killed{}", said(errors));
            Ended::Crashed { output, why }
        }
    }
}

/// What the tool wrote to its standard error, as the end of a sentence.
fn said(errors: &Output) -> String {
    let text = String::from_utf8_lossy(&errors.bytes);
    // The kept part may begin inside a character.
    let text = text.trim_start_matches('\u{FFFD}').trim();
    if text.is_empty() {
        ", and nothing on its standard error".to_owned()
    } else {
        format!("; its standard error ends with:\n{text}")
    }
}

fn name(signal: i32) -> String {
    let word = match signal {
        4 => "illegal instruction",
        6 => "abort",
        7 => "bus error",
        8 => "arithmetic error",
        9 => "kill",
        11 => "segmentation fault",
        13 => "broken pipe",
        15 => "termination",
        _ => return format!("signal {signal}"),
    };
    format!("signal {signal} ({word})")
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn errors(text: &'static [u8]) -> Output {
        Output { bytes: Bytes::from_static(text), total: 0 }
    }

    fn judged(stop: Option<Stop>, report: Option<Report>) -> Ended {
        verdict(End { stop, report }, Output::default(), &errors(b"oh no\n"))
    }

    #[test]
    fn a_tool_that_ended_by_itself_is_believed_whatever_was_going_on() {
        for stop in [None, Some(Stop::Late), Some(Stop::Cancelled)] {
            assert_eq!(judged(stop, Some(Report::Exited(0))), Ended::Done(Output::default()));
            let why = "the tool ended with exit code 75; its standard error ends with:\noh no";
            let failed =
                Ended::Failed { output: Output::default(), why: why.to_owned(), retryable: true };
            assert_eq!(judged(stop, Some(Report::Exited(75))), failed);
        }
    }

    #[test]
    fn a_process_that_was_stopped_is_late_or_cancelled_even_without_a_guard() {
        for report in [Some(Report::Killed(9)), None] {
            let output = Output::default();
            let late = Ended::TimedOut { output: output.clone() };
            assert_eq!(judged(Some(Stop::Late), report.clone()), late);
            let receipt = Receipt::StoppedAfterEffectBegan;
            let cancelled = Ended::Cancelled { output, receipt };
            assert_eq!(judged(Some(Stop::Cancelled), report), cancelled);
        }
    }

    #[test]
    fn a_signal_of_its_own_is_a_crash() {
        let why = "the tool was ended by signal 11 (segmentation fault); \
                   its standard error ends with:\noh no";
        let crashed = Ended::Crashed { output: Output::default(), why: why.to_owned() };
        assert_eq!(judged(None, Some(Report::Killed(11))), crashed);
    }

    #[test]
    fn standard_error_may_be_cut_invalid_or_empty() {
        assert_eq!(
            said(&errors(b"\x9F\x99\x82 a\xFFb\n")),
            "; its standard error ends with:\na\u{FFFD}b"
        );
        assert_eq!(said(&errors(b" \n")), ", and nothing on its standard error");
    }
}

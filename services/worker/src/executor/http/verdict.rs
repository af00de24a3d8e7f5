//! From an answer to how the attempt ended.
//!
//! An answer that says what happened is an end: done or failed. One that leaves it open, because it
//! was lost, broke off, came from a gateway or is not what a server of that tool would say, counts
//! as a crash for a tool that may not be repeated: it is in doubt, or checked. A tool that may be
//! repeated simply failed.

use std::sync::Arc;
use std::time::Duration;

use definitions::http::{HttpRun, Pick};
use proto::tool::Effect;
use reqwest::StatusCode;
use reqwest::header::CONTENT_ENCODING;
use tokio::time::Instant;

use super::super::secrets::Secrets;
use super::super::{Ended, Job, NotStarted, Output};
use super::exchange::{Answer, Head};
use super::kept::Kept;
use super::pick::{Nothing, pick};
use super::retry_after::{Wait, asked};

/// What an answer is to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    /// A request that may be sent again.
    Repeatable,
    /// A request whose effect must not happen twice.
    Once,
    /// Whether an effect happened.
    Probe,
}

impl Asked {
    fn of(run: &HttpRun, effect: Effect) -> Self {
        match effect {
            _ if run.is_probe => Self::Probe,
            Effect::ReadOnly | Effect::Idempotent => Self::Repeatable,
            Effect::Checkable | Effect::Irreversible => Self::Once,
        }
    }
}

/// What a tool makes of an answer.
pub(super) struct Judge {
    pub(super) pick: Pick,
    success: Vec<u16>,
    secrets: Secrets,
    asked: Asked,
    /// The longest wait that leaves time for another try.
    patience: Duration,
    wait: Arc<Wait>,
}

impl Judge {
    pub(super) fn of_tool(run: &HttpRun, secrets: Vec<String>, job: &Job, wait: Arc<Wait>) -> Self {
        let terms = &job.call.terms;
        Self {
            pick: run.result.clone(),
            success: run.success.clone(),
            secrets: Secrets::new(secrets),
            asked: Asked::of(run, terms.effect),
            patience: Duration::from_millis(terms.timeout_ms / 2),
            wait,
        }
    }

    /// A judge of pages that anybody may read.
    pub(super) fn of_page(job: &Job, wait: Arc<Wait>) -> Self {
        Self {
            pick: Pick::Whole,
            success: Vec::new(),
            secrets: Secrets::default(),
            asked: Asked::Repeatable,
            patience: Duration::from_millis(job.call.terms.timeout_ms / 2),
            wait,
        }
    }

    pub(super) fn ended(&self, answer: Answer, kept: Kept) -> Ended {
        match answer {
            Answer::Complete { head, cut } => self.complete(&head, cut, kept),
            Answer::Truncated { head, why } => {
                let status = named(head.status);
                let bytes = kept.total();
                let why = format!(
                    "the server answered {status}, but the body broke off after {bytes} bytes: {why}"
                );
                self.open(kept.finish(), &why, true)
            }
            Answer::Lost(why) => self.open(Output::default(), &why, true),
            Answer::NotConnected { why, may_pass } => {
                Ended::NotStarted(NotStarted { why: self.hide(&why), retryable: may_pass })
            }
            Answer::Redirected { status, target, why } => {
                let name = named(status);
                let why = format!(
                    "the server answered {name} and points to {target}, which was not followed: {why}"
                );
                if may_have_worked(status) {
                    return self.open(Output::default(), &why, false);
                }
                self.failed(Output::default(), &why, false)
            }
        }
    }

    fn complete(&self, head: &Head, cut: bool, kept: Kept) -> Ended {
        let status = named(head.status);
        if !self.is_success(head.status) {
            return self.refused(head, kept.finish());
        }
        if let Some(coding) = coding(head) {
            let why = format!(
                "the server answered {status} with a body compressed as {coding}, which was not asked for"
            );
            return self.open(Output::default(), &why, false);
        }
        let is_whole = kept.is_whole() && !cut;
        match pick(&self.pick, kept.bytes()) {
            None => Ended::Done(noted(self.clean(kept.finish()), cut)),
            Some(_) if !is_whole => {
                let (total, room) = (kept.total(), kept.bytes().len());
                let why = format!(
                    "the server answered {status}, but its body of {total} bytes or more is too \
                     long to be read as JSON: {room} are kept"
                );
                self.open(kept.finish(), &why, false)
            }
            Some(Ok(text)) => Ended::Done(self.clean(Output::from(text))),
            Some(Err(Nothing::Missing(why))) if self.asked == Asked::Probe => {
                let why = format!("the server answered {status}, but {why}");
                self.no(kept.finish(), &why)
            }
            Some(Err(Nothing::Unreadable(why) | Nothing::Missing(why))) => {
                let why = format!("the server answered {status}, but {why}");
                self.open(kept.finish(), &why, false)
            }
        }
    }

    pub(super) fn is_success(&self, status: StatusCode) -> bool {
        if self.success.is_empty() {
            status.is_success()
        } else {
            self.success.contains(&status.as_u16())
        }
    }

    /// A status that says no.
    fn refused(&self, head: &Head, output: Output) -> Ended {
        let status = head.status;
        let asked = asked(&head.headers);
        let wish = asked.map_or(String::new(), |asked| {
            format!(" and asks to wait {} seconds", asked.as_secs())
        });
        let why = format!("the server answered {}{wish}", named(status));
        if matches!(status, StatusCode::NOT_FOUND | StatusCode::GONE) {
            return self.no(output, &why);
        }
        if matches!(status, StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT) {
            return self.open(output, &why, true);
        }
        let in_time = asked.is_none_or(|asked| asked <= self.patience);
        if let (Some(asked), true) = (asked, in_time) {
            self.wait.until(Instant::now() + asked);
        }
        self.failed(output, &why, may_pass(status) && in_time)
    }

    /// An end that leaves open what happened.
    fn open(&self, output: Output, why: &str, retryable: bool) -> Ended {
        match self.asked {
            Asked::Repeatable => self.failed(output, why, retryable),
            Asked::Once | Asked::Probe => {
                Ended::Crashed { output: self.clean(output), why: self.hide(why) }
            }
        }
    }

    /// An end that says that nothing was done.
    fn failed(&self, output: Output, why: &str, retryable: bool) -> Ended {
        match self.asked {
            // It says so of the question, not of the effect.
            Asked::Probe => self.open(output, why, retryable),
            Asked::Repeatable | Asked::Once => {
                let (output, why) = (self.clean(output), self.hide(why));
                Ended::Failed { output, why, retryable }
            }
        }
    }

    /// A clear no.
    fn no(&self, output: Output, why: &str) -> Ended {
        let (output, why) = (self.clean(output), self.hide(why));
        Ended::Failed { output, why, retryable: false }
    }

    /// A server may repeat what it was sent, so the secrets of a request are taken out of what
    /// comes back.
    pub(super) fn clean(&self, output: Output) -> Output {
        self.secrets.clean(output)
    }

    fn hide(&self, text: &str) -> String {
        self.secrets.hide(text)
    }
}

/// The body as it is; one that nobody read to its end says so.
fn noted(output: Output, cut: bool) -> Output {
    if !cut {
        return output;
    }
    let mut bytes = output.bytes.to_vec();
    let note = format!(
        "\n[the body went on after {} bytes, and the connection was closed]\n",
        output.total
    );
    bytes.extend(note.into_bytes());
    Output { bytes: bytes.into(), total: output.total }
}

fn coding(head: &Head) -> Option<String> {
    let coding = head.headers.get(CONTENT_ENCODING)?.to_str().ok()?.trim();
    (!coding.is_empty() && !coding.eq_ignore_ascii_case("identity")).then(|| coding.to_owned())
}

fn named(status: StatusCode) -> String {
    let reason = status.canonical_reason().map_or(String::new(), |reason| format!(" {reason}"));
    format!("{}{reason}", status.as_u16())
}

/// Redirects that servers also use to say that it is done.
fn may_have_worked(status: StatusCode) -> bool {
    matches!(status, StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND | StatusCode::SEE_OTHER)
}

/// Statuses by which a server says that another try may succeed.
fn may_pass(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::REQUEST_TIMEOUT
            | StatusCode::TOO_EARLY
            | StatusCode::TOO_MANY_REQUESTS
            | StatusCode::INTERNAL_SERVER_ERROR
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    )
}

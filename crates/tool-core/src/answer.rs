//! What a call is answered with when no attempt produced a result.

use std::time::Duration;

use proto::error_code::ErrorCode;
use proto::observation::Receipt;
use proto::tool::Effect;

use crate::receipt;

/// The part of an observation that this crate decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Absent on success.
    pub code: Option<ErrorCode>,
    /// What the model reads.
    pub content: String,
    /// How far the call had come, where that matters.
    pub receipt: Option<Receipt>,
}

impl Answer {
    /// A result of the tool.
    pub fn result(content: impl Into<String>) -> Self {
        Self { code: None, content: content.into(), receipt: None }
    }

    /// Why there is none.
    pub fn failure(code: ErrorCode, content: impl Into<String>) -> Self {
        Self { code: Some(code), content: content.into(), receipt: None }
    }

    /// The same with a receipt.
    #[must_use]
    pub fn with_receipt(mut self, receipt: Receipt) -> Self {
        self.receipt = Some(receipt);
        self
    }
}

/// Why a call is not started, or not started again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No worker was free in time.
    TooLate,
    /// The worker's tool is another version than the planner validated the call against.
    VersionMismatch,
    /// The arguments break the schema of the worker's tool, and how.
    InvalidArguments(String),
    /// The call was cancelled.
    Cancelled,
    /// Too many recent calls of the tool failed.
    BreakerOpen,
    /// An operator holds it back, and in which words.
    Frozen(String),
    /// All attempts were made.
    UsedUp,
    /// It is not the call that was agreed to, and why.
    NotApproved(String),
    /// Another call holds the resource, or it rests, and in which words.
    Conflict(String),
    /// There is no room, and what is used up.
    Exhausted(String),
}

/// What is known of earlier attempts of a call that is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Earlier {
    /// There was none.
    None,
    /// One was claimed and its effect never began.
    Claimed,
    /// A check after this one found no effect.
    Checked(u32),
    /// Another delivery of a repeatable call may have begun one: no record would tell.
    Unknown(Effect),
}

impl Refusal {
    /// What the model reads: why, what happened, what to do.
    pub fn answer(&self, earlier: Earlier) -> Answer {
        let (code, why, advice) = self.words();
        let (happened, receipt) = earlier.words();
        let content = format!("{why} {happened}{advice}");
        Answer::failure(code, content).with_receipt(receipt)
    }

    fn words(&self) -> (ErrorCode, &'static str, String) {
        match self {
            Self::TooLate => (
                ErrorCode::Unavailable,
                "No worker was free to start the call in time.",
                String::new(),
            ),
            Self::VersionMismatch => (
                ErrorCode::VersionMismatch,
                "The worker runs another version of this tool than the one the call was checked \
                 against.",
                " Ask again to use the version on offer.".to_owned(),
            ),
            Self::InvalidArguments(problems) => (
                ErrorCode::InvalidArguments,
                "The arguments are not valid.",
                format!("\n{problems}"),
            ),
            Self::Cancelled => (ErrorCode::Cancelled, "Cancelled.", String::new()),
            Self::Frozen(words) => (
                ErrorCode::Frozen,
                "An operator has frozen this tool.",
                format!(
                    " Do not call it again in this run; go on without it, or say that it has to wait. \
                     {words}"
                ),
            ),
            Self::BreakerOpen => (
                ErrorCode::Unavailable,
                "Most recent calls of this tool failed, so it is not tried at the moment.",
                " Try another way, or again in a minute.".to_owned(),
            ),
            Self::UsedUp => (ErrorCode::ToolFailed, "All attempts were made.", String::new()),
            Self::NotApproved(why) => (
                ErrorCode::NotApproved,
                "The call is not the one that was agreed to.",
                format!(" {why} Ask again; a new call is a new question."),
            ),
            Self::Conflict(words) => (
                ErrorCode::Conflict,
                "What the call would change is not free.",
                format!(" {words} Look at its state before you try again."),
            ),
            Self::Exhausted(words) => (
                ErrorCode::Exhausted,
                "There was no room for the call in time.",
                format!(" {words} Try again later, or with less at once."),
            ),
        }
    }
}

impl Earlier {
    fn words(self) -> (String, Receipt) {
        match self {
            Self::None => {
                let text = "The call never started and nothing happened.";
                (text.to_owned(), Receipt::NeverStarted)
            }
            Self::Claimed => {
                let text = "The call was claimed, but it never began and nothing happened.";
                (text.to_owned(), Receipt::StoppedBeforeEffect)
            }
            Self::Checked(attempt) => {
                let text = format!(
                    "A check after attempt {attempt} found that the effect did not happen, and no \
                     further attempt is made."
                );
                (text, Receipt::StoppedBeforeEffect)
            }
            Self::Unknown(effect) => {
                let text = "It was not started here, but an earlier worker had it and may have \
                            begun; to make the call again does no harm.";
                (text.to_owned(), receipt::for_effect(effect, Receipt::Unknown))
            }
        }
    }
}

/// The call's start is in the journal, but its worker knows that the effect never began.
pub fn stopped_before_effect() -> Answer {
    let text =
        "The worker could not begin in time after it had claimed the call. Nothing happened.";
    Answer::failure(ErrorCode::Unavailable, text).with_receipt(Receipt::StoppedBeforeEffect)
}

/// A check found the effect of an attempt whose own answer was lost or unclear.
pub fn effect_found(probe_output: &str) -> Answer {
    let text = format!(
        "The attempt's own answer is missing or unclear, but a check found that its effect \
         happened. The check says:\n{probe_output}"
    );
    Answer::result(text).with_receipt(Receipt::Completed)
}

/// The attempt was killed at its limit.
pub fn timed_out(limit: Duration, attempts: u32) -> Answer {
    let tries =
        if attempts > 1 { format!(", as did {attempts} attempts in all") } else { String::new() };
    let limit = limit.as_millis();
    let text = format!(
        "The tool did not end within {limit} ms and was killed{tries}. The limit is `timeout_ms` in \
         its tool file."
    );
    Answer::failure(ErrorCode::TimedOut, text)
}

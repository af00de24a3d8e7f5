//! What a call is answered with when no attempt produced a result.

use std::time::Duration;

use proto::error_code::ErrorCode;
use proto::observation::Receipt;

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

    /// The same for a call of which attempts were made and a check found no effect.
    #[must_use]
    pub fn after_attempts(self, made: u32) -> Self {
        let content = format!(
            "A check after attempt {made} found that the effect did not happen, and no further \
             attempt is made. {}",
            self.content
        );
        Self { content, receipt: Some(Receipt::StoppedBeforeEffect), ..self }
    }
}

/// A call that never starts; nothing happened.
fn never(code: ErrorCode, content: impl Into<String>) -> Answer {
    Answer::failure(code, content).with_receipt(Receipt::NeverStarted)
}

/// No worker was free in time.
pub fn too_late() -> Answer {
    never(
        ErrorCode::Unavailable,
        "No worker was free to start the call in time. It never started and nothing happened.",
    )
}

/// The worker's tool is another version than the planner validated the call against.
pub fn version_mismatch() -> Answer {
    never(
        ErrorCode::VersionMismatch,
        "The worker runs another version of this tool than the one the call was checked against. \
         Nothing was started. Ask again to use the version on offer.",
    )
}

/// The arguments break the schema of the worker's tool.
pub fn invalid_arguments(problems: &str) -> Answer {
    never(
        ErrorCode::InvalidArguments,
        format!("The arguments are not valid; the call never started.\n{problems}"),
    )
}

/// The call was cancelled before it began.
pub fn cancelled_before_start() -> Answer {
    never(ErrorCode::Cancelled, crate::receipt::text(Receipt::NeverStarted))
}

/// Too many recent calls of the tool failed.
pub fn breaker_open() -> Answer {
    never(
        ErrorCode::Unavailable,
        "Most recent calls of this tool failed, so it is not tried at the moment. The call never \
         started and nothing happened. Try another way, or again in a minute.",
    )
}

/// All attempts were made.
pub fn used_up() -> Answer {
    Answer::failure(ErrorCode::ToolFailed, "All attempts were made.")
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
    let text =
        format!("The tool did not end within {} ms and was killed{tries}.", limit.as_millis());
    Answer::failure(ErrorCode::TimedOut, text)
}

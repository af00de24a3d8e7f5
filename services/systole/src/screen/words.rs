//! Words for what events only name.

use proto::fact::{SealReason, VerifyStep};
use proto::notice::{Deadline, Next};

/// What a turn does for the answer's verification.
pub(super) fn step_words(step: VerifyStep) -> &'static str {
    match step {
        VerifyStep::Questions => ", verifying: questions to the draft",
        VerifyStep::Check => ", verifying: their answers",
        VerifyStep::Revise => ", verifying: what is left",
    }
}

/// A deadline that ran out, and what happens.
pub(super) fn late_words(deadline: Deadline, next: Next) -> String {
    let late = match deadline {
        Deadline::FirstToken => "the model did not begin to answer in time",
        Deadline::Idle => "the model stopped answering",
        Deadline::Total | Deadline::Run => "the reply took too long",
        Deadline::Call => "nobody answered the call in time",
    };
    let next = match next {
        Next::AskedAgain => "it is asked again",
        Next::AskedElsewhere => "the next model is asked",
        Next::TurnSealed => "the run goes on with what came",
        Next::CallClosed => "the run goes on without it",
        Next::RunEnds => "the run ends",
    };
    format!("{late}; {next}")
}

/// Why a reply was cut short.
pub(super) fn seal_words(why: SealReason) -> &'static str {
    match why {
        SealReason::OwnerLost => "the process that asked is gone; its calls go on",
        SealReason::StreamBroken => "the model's stream broke; its calls go on",
        SealReason::Interrupted => "interrupted",
        SealReason::HandedBack => "saved; it is asked again",
    }
}

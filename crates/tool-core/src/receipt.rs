//! How far a stopped call had come, and how that is told.

use proto::error_code::ErrorCode;
use proto::observation::Receipt;
use proto::tool::Effect;

use crate::answer::Answer;

/// What the model reads about a receipt.
pub fn text(receipt: Receipt) -> &'static str {
    match receipt {
        Receipt::NeverStarted => "Cancelled. The call never started and nothing happened.",
        Receipt::StoppedBeforeEffect => "Cancelled. The call was stopped before it had any effect.",
        Receipt::StoppedAfterEffectBegan => {
            "Cancelled. The call was stopped after its effect had begun; part of it may have \
             happened."
        }
        Receipt::Completed => "The call had completed before the cancel reached it.",
        Receipt::Unknown => {
            "Cancelled. Nobody can tell how far the call had come; check the real state."
        }
    }
}

/// The answer of a call that was stopped.
pub fn cancelled(receipt: Receipt) -> Answer {
    Answer::failure(ErrorCode::Cancelled, text(receipt)).with_receipt(receipt)
}

/// What an executor's receipt means for a tool: one that changes nothing has no effect to begin.
pub fn for_effect(effect: Effect, receipt: Receipt) -> Receipt {
    match (effect, receipt) {
        (Effect::ReadOnly, Receipt::StoppedAfterEffectBegan | Receipt::Unknown) => {
            Receipt::StoppedBeforeEffect
        }
        (_, other) => other,
    }
}

/// The receipt of a call that is stopped in the pause between two attempts.
pub fn between_attempts(effect: Effect) -> Receipt {
    for_effect(effect, Receipt::StoppedAfterEffectBegan)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_tool_is_always_stopped_before_an_effect() {
        let read_only = [
            Receipt::NeverStarted,
            Receipt::StoppedBeforeEffect,
            Receipt::StoppedAfterEffectBegan,
            Receipt::Completed,
            Receipt::Unknown,
        ]
        .map(|receipt| for_effect(Effect::ReadOnly, receipt));
        let expected = [
            Receipt::NeverStarted,
            Receipt::StoppedBeforeEffect,
            Receipt::StoppedBeforeEffect,
            Receipt::Completed,
            Receipt::StoppedBeforeEffect,
        ];
        assert_eq!(read_only, expected);
    }

    #[test]
    fn other_tools_keep_what_the_executor_says() {
        for effect in [Effect::Idempotent, Effect::Checkable, Effect::Irreversible] {
            assert_eq!(for_effect(effect, Receipt::Unknown), Receipt::Unknown);
            assert_eq!(between_attempts(effect), Receipt::StoppedAfterEffectBegan);
        }
    }
}

//! The start subject of one call: attempts and the bar.

use proto::call::{Start, Started};
use proto::tool::Effect;

use crate::rule::{Invariant, Report};

/// What lies on a call's start subject.
#[derive(Clone, Debug, Default)]
pub(crate) struct Starts {
    attempts: u32,
    barred: bool,
    /// Checkpoints since the bar, as far as they count.
    checkpoints: u8,
}

/// Checkpoints after which the record of a bar may be purged.
const PURGED_AFTER: u8 = 2;

impl Starts {
    /// A checkpoint purges what the one before it stands for: a bar may be gone after the second one,
    /// and whoever still has to bar the call bars it again.
    pub(crate) fn checkpoint(&mut self) {
        self.checkpoints = self.checkpoints.saturating_add(1).min(PURGED_AFTER);
    }

    /// Judges the next record of the subject. `effect` is the class of a dispatched call.
    pub(crate) fn push(
        &mut self,
        start: &Start,
        effect: Option<Effect>,
        answered: bool,
        report: &mut Report,
    ) {
        let renewed = matches!(start, Start::Barred(_)) && self.checkpoints == PURGED_AFTER;
        if self.barred && !renewed {
            report.breaks(Invariant::BarIsFinal, "the call was barred before");
        }
        match start {
            Start::Barred(_) => (self.barred, self.checkpoints) = (true, 0),
            // Never on a call's subject.
            Start::Held(_) => {}
            Start::Started(started) => {
                self.judge(started, effect, answered, report);
                self.attempts = self.attempts.saturating_add(1);
            }
        }
    }

    fn judge(
        &self,
        started: &Started,
        effect: Option<Effect>,
        answered: bool,
        report: &mut Report,
    ) {
        let next = self.attempts.saturating_add(1);
        if effect == Some(Effect::Irreversible) && self.attempts > 0 {
            let why = format!("{} is irreversible and had started", started.tool_call_id);
            report.breaks(Invariant::NoSecondStart, why);
        }
        if started.attempt != next {
            let why = format!("attempt {} where {next} was next", started.attempt);
            report.breaks(Invariant::AttemptsAreCounted, why);
        }
        if effect.is_none() {
            let why = format!("{} was never dispatched", started.tool_call_id);
            report.breaks(Invariant::AttemptsAreCounted, why);
        }
        // A later attempt of a checkable call may race with its deadline; a first one is barred.
        if answered && self.attempts == 0 {
            let why = format!("{} was answered and not barred", started.tool_call_id);
            report.breaks(Invariant::NoStartAfterAnswer, why);
        }
    }
}

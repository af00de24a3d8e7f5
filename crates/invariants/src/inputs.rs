//! Inputs: each accepted one is read by a turn, or ends with its run.

use std::collections::BTreeSet;

use proto::fact::{EndReason, RunFinished, Standing, TurnStarted};
use proto::ids::{InputKey, Sequence};
use proto::input::{Input, InputBody};

use crate::rule::{Invariant, Report};

/// Inputs that nobody has read yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inputs {
    keys: BTreeSet<InputKey>,
    unread: Vec<Unread>,
    /// Whether the active run has made a turn.
    run_has_turn: bool,
}

#[derive(Clone, Debug)]
struct Unread {
    at: Sequence,
    /// Only the first turn of a later run reads it.
    waits_for_run: bool,
    /// It starts a run, so the end of another run does not answer it.
    is_message: bool,
}

impl Inputs {
    /// Takes an input; a repeated key is the first input again.
    pub(crate) fn push(&mut self, at: Sequence, input: &Input, run_is_active: bool) {
        if !self.keys.insert(input.key.clone()) {
            return;
        }
        match &input.body {
            InputBody::Message(_) => {
                self.unread.push(Unread { at, waits_for_run: run_is_active, is_message: true });
            }
            InputBody::Steer(_) | InputBody::Interrupt(_) => {
                self.unread.push(Unread { at, waits_for_run: false, is_message: false });
            }
            // They speak to the active run or to one approval, and to nothing when there is none.
            InputBody::Cancel { .. } | InputBody::Decision(_) => {}
        }
    }

    /// What a planner says is read or not; the records that show it may be lost or purged.
    pub(crate) fn stands(&mut self, standing: &Standing) {
        self.unread
            .retain(|input| input.at > standing.folded || standing.unread.contains(&input.at));
        self.run_has_turn = standing.run.as_ref().is_some_and(|run| run.turns > 0);
    }

    /// Inputs that the journal has lost are still known by their keys.
    pub(crate) fn know(&mut self, keys: impl IntoIterator<Item = InputKey>) {
        self.keys.extend(keys);
    }

    /// A turn reads everything up to `seen`.
    pub(crate) fn turn_started(&mut self, fact: &TurnStarted, again: bool) {
        let begins_run = fact.turn == 1 && !again && !self.run_has_turn;
        self.run_has_turn = true;
        self.unread.retain(|input| input.at > fact.seen || (input.waits_for_run && !begins_run));
    }

    /// The end of a run takes along what it had seen and only it could have read. An answer takes
    /// nothing along, for it was given without having read it.
    pub(crate) fn run_finished(&mut self, fact: &RunFinished) {
        let had_turn = std::mem::take(&mut self.run_has_turn);
        match fact.reason {
            EndReason::Answer | EndReason::Confident => {}
            EndReason::NothingNew
            | EndReason::UserEnded
            | EndReason::MaxTurns
            | EndReason::MaxTokens
            | EndReason::MaxMoney
            | EndReason::MaxWallTime
            | EndReason::MaxToolCalls
            | EndReason::Cancelled
            | EndReason::Error => {
                self.unread.retain(|input| input.at > fact.seen || (had_turn && input.is_message));
            }
        }
    }

    /// At rest nothing is unread.
    pub(crate) fn judge_rest(&self, report: &mut Report) {
        for input in &self.unread {
            let why = "no turn has read the input";
            report.breaks_at(Invariant::InputsAreAnswered, input.at, why);
        }
    }
}

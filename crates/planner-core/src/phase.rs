//! The phase of a run: derived from the fold, never stored; and how one becomes another.

use proto::ids::Sequence;
pub use proto::phase::{Phase, Waiting};

use crate::next_turn::answer_text;
use crate::thread::Thread;

/// Whether `next` may come directly after `phase`. A run may end from any phase.
pub fn may_become(phase: Phase, next: Phase) -> bool {
    next == Phase::Terminating || successors(phase).contains(&next)
}

/// A reply that asks for nothing leads from reasoning to evaluating.
fn successors(phase: Phase) -> &'static [Phase] {
    match phase {
        Phase::Initializing | Phase::Evaluating => &[Phase::Observing],
        Phase::Observing => &[Phase::Reasoning],
        Phase::Reasoning => &[Phase::Acting, Phase::Evaluating],
        Phase::Acting => &[Phase::Evaluating],
        Phase::Terminating => &[Phase::Initializing],
    }
}

/// The phase of a thread's run; of a thread without one, `Terminating` while nothing waits.
pub fn phase(thread: &Thread) -> Phase {
    let Some(run) = &thread.run else {
        let fresh = thread.unread.is_empty();
        return if fresh { Phase::Terminating } else { Phase::Initializing };
    };
    if run.open.is_some() {
        return Phase::Reasoning;
    }
    if thread.open_calls().next().is_some() {
        return Phase::Acting;
    }
    if answer_text(thread).is_some() { Phase::Evaluating } else { Phase::Observing }
}

/// What the run waits for by its journal; live text may know more.
fn waiting(thread: &Thread, phase: Phase) -> Option<Waiting> {
    let open = thread.run.as_ref().and_then(|run| run.open.as_ref());
    match phase {
        Phase::Reasoning if open.is_some_and(|open| !open.dispatched.is_empty()) => {
            Some(Waiting::ToolCalls)
        }
        Phase::Reasoning => Some(Waiting::Reasoning),
        Phase::Acting => Some(Waiting::Observation),
        Phase::Initializing | Phase::Observing | Phase::Evaluating | Phase::Terminating => None,
    }
}

/// Tells every phase that a run passes, also those that last no time, so that a reader sees only
/// legal transitions.
#[derive(Clone, Debug)]
pub struct Phases {
    at: Phase,
    waiting: Option<Waiting>,
    turn: Option<Sequence>,
}

/// A phase that was entered, or what is waited for in it.
pub type Entered = (Phase, Option<Waiting>);

impl Default for Phases {
    fn default() -> Self {
        Self { at: Phase::Terminating, waiting: None, turn: None }
    }
}

impl Phases {
    /// What was entered by the thread's newest record; `ended` when that record ended the run. An
    /// input that waits for the next run is told with the record after it.
    pub fn after_record(&mut self, thread: &Thread, ended: bool) -> Vec<Entered> {
        let target = if ended { Phase::Terminating } else { phase(thread) };
        let wait = if ended { None } else { waiting(thread, target) };
        let turn = thread.run.as_ref().and_then(|run| run.open.as_ref()).map(|open| open.sequence);
        if self.at == target {
            let same_turn = self.turn == turn;
            return if same_turn && self.is_known(wait) {
                Vec::new()
            } else {
                self.enter(target, wait, turn)
            };
        }
        let mut entered = path(self.at, target);
        entered.pop();
        let mut told: Vec<Entered> = entered.into_iter().map(|phase| (phase, None)).collect();
        told.extend(self.enter(target, wait, turn));
        told
    }

    /// What was entered when a piece of the open turn's reply came.
    pub fn after_word(&mut self) -> Option<Entered> {
        if self.waiting != Some(Waiting::Reasoning) {
            return None;
        }
        self.waiting = Some(Waiting::ToolCalls);
        Some((self.at, self.waiting))
    }

    /// The journal knows less than live text: it never takes back that the reply has begun.
    fn is_known(&self, wait: Option<Waiting>) -> bool {
        let has_begun = self.waiting == Some(Waiting::ToolCalls);
        self.waiting == wait || (has_begun && wait == Some(Waiting::Reasoning))
    }

    fn enter(
        &mut self,
        at: Phase,
        waiting: Option<Waiting>,
        turn: Option<Sequence>,
    ) -> Vec<Entered> {
        *self = Self { at, waiting, turn };
        vec![(at, waiting)]
    }
}

/// The phases from after `from` up to `to`, all transitions legal.
pub fn path(from: Phase, to: Phase) -> Vec<Phase> {
    let mut passed = Vec::new();
    let mut at = from;
    while at != to {
        let next = successors(at);
        at = if may_become(at, to) { to } else { next.last().copied().unwrap_or(to) };
        passed.push(at);
        if passed.len() > 6 {
            // Only a new run initializes, and only after the end of the last one.
            return vec![Phase::Terminating, to];
        }
    }
    passed
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Phase; 6] = [
        Phase::Initializing,
        Phase::Observing,
        Phase::Reasoning,
        Phase::Acting,
        Phase::Evaluating,
        Phase::Terminating,
    ];

    #[test]
    fn every_path_is_legal_and_ends_where_it_should() {
        for from in ALL {
            for to in ALL.into_iter().filter(|to| *to != from) {
                let mut at = from;
                for next in path(from, to) {
                    assert!(may_become(at, next), "{at} became {next} from {from} to {to}");
                    at = next;
                }
                assert_eq!(at, to, "from {from}");
            }
        }
    }

    #[test]
    fn nothing_reasons_before_it_has_observed() {
        let before: Vec<Phase> =
            ALL.into_iter().filter(|from| may_become(*from, Phase::Reasoning)).collect();
        assert_eq!(before, [Phase::Observing]);
    }
}

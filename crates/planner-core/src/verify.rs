//! A chain of verification: the draft of an answer is questioned, the questions are answered, with
//! tools where one can tell, and what is left is the answer. Each step is a turn like any other, so
//! budgets, crashes and stops treat it as one; which step it is lies in the journal.

use proto::agent::{Agent, Verify};
use proto::fact::{EndReason, Verification, VerifyStep};

use crate::thread::Run;

/// The longest draft that the end of a run carries beside its answer, in bytes: both have to fit into
/// one message.
const DRAFT: usize = 64 * 1024;

/// The step that follows an answer; none when the answer may be given. A verification that has begun
/// goes on though the agent's file says otherwise by now: its last reply need not be an answer.
pub fn next_step(run: &Run, agent: &Agent) -> Option<VerifyStep> {
    let done = run.verifying.as_ref().map(|verifying| verifying.step);
    match (agent.verify, done) {
        (Verify::Off, None) | (_, Some(VerifyStep::Revise)) => None,
        (Verify::Chain, None) => Some(VerifyStep::Questions),
        (_, Some(VerifyStep::Questions)) => Some(VerifyStep::Check),
        (_, Some(VerifyStep::Check)) => Some(VerifyStep::Revise),
    }
}

/// Whether an answer of the turn that takes this step is verified before it is given.
pub fn is_draft(agent: &Agent, step: Option<VerifyStep>) -> bool {
    match step {
        None => agent.verify == Verify::Chain,
        Some(VerifyStep::Questions | VerifyStep::Check) => true,
        Some(VerifyStep::Revise) => false,
    }
}

/// What the model is asked to do in a step.
pub fn note(step: VerifyStep) -> &'static str {
    match step {
        VerifyStep::Questions => {
            "The last reply is a draft, not yet the answer. List each claim in it that could \
             be wrong, and under each write one question whose answer would show that. Reply with \
             the questions only."
        }
        VerifyStep::Check => {
            "Answer each of the questions on its own, without leaning on the draft. Where a tool \
             can tell, call it and go by its result; where none can, say how sure you are. When \
             all are answered, reply with the questions and their answers."
        }
        VerifyStep::Revise => {
            "Give the user the answer: the draft, with every claim that did not hold corrected or \
             left out, and what could not be checked named as such. Reply with the answer only."
        }
    }
}

/// What came of it, when an answer is given now.
pub fn verdict(
    run: &Run,
    agent: &Agent,
    answer: &str,
    spent: Option<EndReason>,
) -> Option<Verification> {
    let Some(verifying) = &run.verifying else {
        let because = spent.filter(|_| agent.verify == Verify::Chain)?;
        return Some(Verification::Unfinished { because });
    };
    Some(if verifying.draft.trim() == answer.trim() {
        Verification::Confirmed
    } else {
        Verification::Revised { draft: cut(&verifying.draft) }
    })
}

fn cut(draft: &str) -> String {
    if draft.len() <= DRAFT {
        return draft.to_owned();
    }
    let end = (0..=DRAFT).rev().find(|at| draft.is_char_boundary(*at)).unwrap_or(0);
    format!("{}…", draft.get(..end).unwrap_or_default())
}

/// The draft of a verification that something else has ended.
pub fn unfinished(run: &Run, because: EndReason) -> Option<(String, Verification)> {
    let draft = run.verifying.as_ref()?.draft.clone();
    Some((draft, Verification::Unfinished { because }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_draft_is_cut_between_characters() {
        assert_eq!(cut("short"), "short");
        let long = "ü".repeat(DRAFT);
        let kept = cut(&long);
        assert!(kept.ends_with('…') && kept.len() <= DRAFT + '…'.len_utf8(), "{}", kept.len());
    }
}

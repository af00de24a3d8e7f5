//! A turn whose reply is not in the journal: leave it to its owner, or take it over.

use proto::call::RequestedCall;
use proto::error_code::ErrorCode;
use proto::fact::{EndReason, Fact, Outcome, SealReason, TurnSealed, TurnStarted};

use crate::calls::{earliest_deadline, is_armed};
use crate::ends;
use crate::live_turn::Meter;
use crate::next_turn;
use crate::thread::{Mode, OpenTurn};
use crate::verify;
use crate::view::{Branch, Decision, Owner, Step, View};

/// Starts of one turn before the run is given up.
pub const MAX_STARTS: u32 = 3;

/// What to do about an open turn, if there is one.
pub fn decide(view: &View<'_>) -> Option<Decision> {
    let open = view.thread.run.as_ref()?.open.as_ref()?;
    if view.begun == Some(open.sequence) {
        return Some(Decision::new(Branch::Reason, Step::Reason));
    }
    if open.started.owner == *view.me {
        return Some(match view.owner {
            Owner::Working => Decision::new(Branch::OwnerWorks, step_while_owned(view, open)),
            Owner::Unasked | Owner::Gone => take_over(view, open),
        });
    }
    if !may_take_over(view, open) {
        return Some(leave(view, open));
    }
    Some(match view.owner {
        Owner::Unasked => {
            Decision::new(Branch::AskOwner, Step::AskOwner(open.started.owner.clone()))
        }
        Owner::Working => Decision::new(Branch::OwnerWorks, step_while_owned(view, open)),
        Owner::Gone => take_over(view, open),
    })
}

/// Only whoever is handed the delivery that the owner held, or a tick past the turn's own deadline.
fn may_take_over(view: &View<'_>, open: &OpenTurn) -> bool {
    view.wake.sequence == open.started.held_by
        || (view.wake.tick && view.now >= open.started.deadline)
}

/// Somebody else's turn. The bus may have handed this delivery out twice, and the other holder may
/// begin a turn on it that nobody would watch once it is acknowledged here: so a tick is armed for
/// the end of this turn, or for a call of it that is due before. A call that is overdue already has
/// to wait for its owner or the end of the turn: a tick for it would come at once, again and again.
fn leave(view: &View<'_>, open: &OpenTurn) -> Decision {
    let call = earliest_deadline(view.thread).filter(|due| *due > view.now);
    let due = call.map_or(open.started.deadline, |call| call.min(open.started.deadline));
    if is_armed(view, due) {
        Decision::new(Branch::NotMine, Step::Rest)
    } else {
        Decision::new(Branch::NotMine, Step::Arm(due))
    }
}

/// The owner's own delivery must not be acknowledged by anybody else.
fn step_while_owned(view: &View<'_>, open: &OpenTurn) -> Step {
    let precious = view.wake.sequence == open.started.held_by
        || (view.wake.tick && view.now >= open.started.deadline);
    if precious { Step::HandBack(view.spans.hand_back) } else { Step::Rest }
}

fn take_over(view: &View<'_>, open: &OpenTurn) -> Decision {
    if !open.dispatched.is_empty() {
        let sealed = seal(view, open, SealReason::OwnerLost);
        return Decision::fact(Branch::SealLost, Fact::TurnSealed(sealed));
    }
    if open.started.start >= MAX_STARTS {
        return crash_loop(view);
    }
    start_again(view, open)
}

/// The request is made anew, with what came meanwhile, by a planner that has the agent's file.
fn start_again(view: &View<'_>, open: &OpenTurn) -> Decision {
    let named = next_turn::next_agent(view.thread).and_then(|name| view.agents.agent(&name));
    let known = named.or_else(|| view.agents.agent(&open.started.agent));
    let Some(agent) = known else { return next_turn::await_agent(view, &open.started.agent) };
    // New words of the user end a verification: there is another answer to come.
    let is_told = view.thread.unread.iter().any(|input| input.mode != Mode::Enqueue);
    let verify = open.started.verify.filter(|_| !is_told);
    let started = TurnStarted {
        verify,
        draft: verify::is_draft(agent, verify),
        start: open.started.start.saturating_add(1),
        seen: view.thread.head.sequence,
        owner: view.me.clone(),
        held_by: view.wake.sequence,
        deadline: view.now.after(view.spans.turn),
        agent: agent.name.clone(),
        agent_fingerprint: agent.fingerprint.clone(),
        ..open.started.clone()
    };
    Decision::fact(Branch::StartAgain, Fact::TurnStarted(started))
}

fn crash_loop(view: &View<'_>) -> Decision {
    let why = "The run was given up: one of its turns was started three times and never ended.";
    let answer = ends::known_so_far(view.thread, why);
    let code = Some(ErrorCode::CrashLoop);
    match ends::finished(view, Outcome::Failed, EndReason::Error, code, answer) {
        Some(finished) => Decision::fact(Branch::CrashLoop, Fact::RunFinished(finished)),
        None => Decision::new(Branch::AtRest, Step::Rest),
    }
}

/// The record that ends a turn without its reply: it keeps the text so far and exactly the calls
/// that are in the journal.
pub fn seal(view: &View<'_>, open: &OpenTurn, why: SealReason) -> TurnSealed {
    let (text, reasoning) = view.kept;
    let price = view.agents.agent(&open.started.agent).and_then(|agent| agent.price);
    let meter = Meter { price, ..Meter::default() };
    TurnSealed {
        run: open.started.run,
        turn: open.started.turn,
        started: open.sequence,
        text: text.to_owned(),
        reasoning: reasoning.to_owned(),
        calls: dispatched_calls(view, open),
        why,
        usage: meter.usage(None, [text, reasoning]),
    }
}

fn dispatched_calls(view: &View<'_>, open: &OpenTurn) -> Vec<RequestedCall> {
    let mut calls: Vec<_> =
        open.dispatched.iter().filter_map(|id| view.thread.calls.get(id)).collect();
    calls.sort_by_key(|call| call.position);
    calls.into_iter().map(|call| call.requested.clone()).collect()
}

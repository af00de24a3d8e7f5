//! Cancel and interrupt: the reply is cut, every open call is answered with a receipt.

use proto::error_code::ErrorCode;
use proto::fact::{EndReason, Fact, Outcome, RunFinished, SealReason};
use proto::ids::Sequence;
use proto::live::Hint;
use proto::observation::{Observation, Receipt};

use crate::calls::{arm_or_rest, checked, closed};
use crate::ends;
use crate::open_turn::seal;
use crate::thread::{Call, StartState};
use crate::view::{Branch, Decision, Step, View};

/// What a cancel or interrupt asks for, if there is one.
pub fn decide(view: &View<'_>) -> Option<Decision> {
    if view.thread.run.is_none() {
        return cancel_unstarted(view);
    }
    if !view.thread.is_stopping() {
        return None;
    }
    let run = view.thread.run.as_ref()?;
    if let Some(open) = &run.open {
        let sealed = seal(view, open, SealReason::Interrupted);
        return Some(Decision::fact(Branch::SealStopped, Fact::TurnSealed(sealed)));
    }
    if let Some(decision) = view.thread.open_calls().find_map(|call| stop_call(view, call)) {
        return Some(decision);
    }
    if view.thread.open_calls().next().is_some() {
        return Some(arm_or_rest(view));
    }
    let cancel = run.cancel?;
    let answer = ends::known_so_far(view.thread, "The run was cancelled.");
    let finished = ends::finished(view, Outcome::Stopped, EndReason::Cancelled, None, answer)?;
    Some(Decision::fact(Branch::CancelDone, cancelled_at(cancel, finished)))
}

/// Input and cancel came before a planner looked: the run ends before it starts.
fn cancel_unstarted(view: &View<'_>) -> Option<Decision> {
    let cancel = view.thread.cancel_unstarted?;
    let answer = "The run was cancelled before it started.".to_owned();
    let finished = ends::unstarted(view, Outcome::Stopped, EndReason::Cancelled, answer);
    Some(Decision::fact(Branch::CancelUnstarted, cancelled_at(cancel, finished)))
}

/// A cancel takes along what came before it; what came later is for the next run.
fn cancelled_at(cancel: Sequence, finished: RunFinished) -> Fact {
    Fact::RunFinished(RunFinished { seen: cancel, ..finished })
}

/// The next step to stop one call; nothing while its worker is on it.
fn stop_call(view: &View<'_>, call: &Call) -> Option<Decision> {
    let Some(dispatched) = &call.dispatched else {
        let text = "Cancelled before it was dispatched; nothing happened.";
        let receipt = Receipt::NeverStarted;
        return Some(close(Branch::CancelWaiting, call, text, receipt));
    };
    if !call.needs_start() {
        let text = "Cancelled. The tool changes nothing that matters if it still ran.";
        return Some(close(Branch::CancelRepeatable, call, text, Receipt::Unknown));
    }
    match &call.start {
        StartState::None => {
            Some(Decision::new(Branch::CancelBar, Step::Bar(dispatched.tool_call_id.clone())))
        }
        StartState::Barred => {
            let text = "Cancelled before it started; nothing happened.";
            Some(close(Branch::CancelBarred, call, text, Receipt::NeverStarted))
        }
        StartState::BarredAfterCheck => {
            let observation = checked(call, ErrorCode::Cancelled);
            Some(closed(Branch::CancelBarred, observation))
        }
        StartState::Started { started, .. } if view.now >= started.until => {
            let text = crate::calls::in_doubt_text(started);
            let observation = Observation::synthesised(call.id().clone(), ErrorCode::InDoubt, text);
            Some(closed(Branch::CancelStarted, observation.with_receipt(Receipt::Unknown)))
        }
        StartState::Started { .. } => None,
    }
}

fn close(branch: Branch, call: &Call, text: &str, receipt: Receipt) -> Decision {
    let observation = Observation::synthesised(call.id().clone(), ErrorCode::Cancelled, text);
    closed(branch, observation.with_receipt(receipt))
}

/// Hints to say once per handling when a run is being stopped: they only make things faster.
pub fn hints(thread: &crate::Thread) -> Vec<Hint> {
    if !thread.is_stopping() {
        return Vec::new();
    }
    let cancel = |call: &Call| Hint::CancelCall { tool_call_id: call.id().clone() };
    thread.open_calls().filter(|call| call.dispatched.is_some()).map(cancel).collect()
}

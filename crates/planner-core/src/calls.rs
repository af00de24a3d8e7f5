//! Calls of a turn whose reply is in the journal: dispatch what is missing, ask people, close what
//! is overdue, and wait for the rest.

use std::time::Duration;

use approval_rule::Verdict;
use proto::call::{Approved, Disposition, RequestedCall, Started, Terms, ToolCall};
use proto::error_code::ErrorCode;
use proto::fact::{ApprovalAsked, Fact};
use proto::hash::arguments_hash;
use proto::ids::{Sequence, ToolName};
use proto::observation::{Observation, Receipt};
use proto::time::Timestamp;
use proto::tool::{Approval, ToolContract, total_time};
use serde_json::{Map, Value};

use crate::thread::{Call, Mode, StartState, Thread};
use crate::toolbox::Tool;
use crate::view::{Armed, Branch, Decision, Spans, Step, View};

/// What the open calls of the active run ask for, if there are any.
pub fn decide(view: &View<'_>) -> Option<Decision> {
    view.thread.run.as_ref()?;
    if let Some(decision) = view.thread.open_calls().find_map(|call| one(view, call)) {
        return Some(decision);
    }
    view.thread.open_calls().next()?;
    Some(arm_or_rest(view))
}

fn one(view: &View<'_>, call: &Call) -> Option<Decision> {
    match &call.dispatched {
        Some(dispatched) => overdue(view, call, dispatched),
        None => undispatched(view, call),
    }
}

/// Before the delivery is let go, the earliest deadline must be on the schedule.
pub fn arm_or_rest(view: &View<'_>) -> Decision {
    let Some(at) = earliest_deadline(view.thread) else {
        return Decision::new(Branch::Wait, Step::Rest);
    };
    if is_armed(view, at) {
        Decision::new(Branch::Wait, Step::Rest)
    } else {
        Decision::new(Branch::Arm, Step::Arm(at))
    }
}

/// Whether a tick is known to come by then.
pub(crate) fn is_armed(view: &View<'_>, at: Timestamp) -> bool {
    match view.armed {
        Armed::Unknown => false,
        Armed::At(armed) => armed <= at,
        Armed::ByOthers => true,
    }
}

/// When something is due next: a call, an approval, a start that may be declared in doubt.
pub fn earliest_deadline(thread: &Thread) -> Option<Timestamp> {
    thread.open_calls().filter_map(|call| deadline(thread, call)).min()
}

/// When a call is due: its own deadline, or that of the question to a person.
pub(crate) fn deadline(thread: &Thread, call: &Call) -> Option<Timestamp> {
    let Some(dispatched) = &call.dispatched else {
        return call.asked.as_ref().map(|asked| asked.expires);
    };
    match &call.start {
        StartState::Started { started, .. } if thread.is_stopping() => Some(started.until),
        StartState::Started { started, .. } => Some(dispatched.deadline.max(started.until)),
        StartState::None | StartState::Barred | StartState::BarredAfterCheck => {
            Some(dispatched.deadline)
        }
    }
}

fn undispatched(view: &View<'_>, call: &Call) -> Option<Decision> {
    match &call.requested.disposition {
        Disposition::Answered(observation) => {
            Some(closed(Branch::Complete, observation.as_ref().clone()))
        }
        Disposition::Dispatch => Some(dispatch(view, call, Branch::Complete, None)),
        Disposition::AwaitApproval => approval(view, call),
    }
}

/// The first word of a person counts, then what the inputs brought along.
fn approval(view: &View<'_>, call: &Call) -> Option<Decision> {
    if let Some(approved) = call.approval() {
        return Some(dispatch(view, call, Branch::Approved, Some(approved)));
    }
    if let Some(decision) = &call.decision {
        let note = if decision.note.is_empty() { "" } else { ": " };
        let text = format!("Denied by {}{note}{}", decision.by, decision.note);
        return Some(never(Branch::DeniedByPerson, call, ErrorCode::Denied, &text));
    }
    if is_pre_approved(view.thread, &call.requested.tool) {
        let hash = arguments_hash(&call.requested.arguments);
        let fingerprint = call.requested.terms.as_ref().map(|terms| terms.fingerprint.clone());
        let by = "pre-approved".to_owned();
        let approved = Approved { by, arguments_hash: hash, fingerprint };
        return Some(dispatch(view, call, Branch::PreApproved, Some(approved)));
    }
    let Some(asked) = &call.asked else { return Some(ask(view, call)) };
    let text = "Nobody decided the approval in time; the call was not made.";
    (view.now >= asked.expires)
        .then(|| never(Branch::ApprovalExpired, call, ErrorCode::ApprovalExpired, text))
}

/// Whether the inputs of the active run brought the approval along. A steer brings it at once: the
/// turn that reads it cannot begin before the waiting call is answered.
pub fn is_pre_approved(thread: &Thread, tool: &str) -> bool {
    let Some(run) = &thread.run else { return false };
    let steers = thread.unread.iter().filter(|input| input.mode != Mode::Enqueue);
    let brought = steers.flat_map(|input| &input.message.approve);
    run.approved.iter().chain(brought).any(|name| name.as_str() == tool)
}

fn ask(view: &View<'_>, call: &Call) -> Decision {
    let (Ok(tool), Some(terms)) = (ToolName::new(&*call.requested.tool), &call.requested.terms)
    else {
        return unknown(call);
    };
    let wait = view.thread.agent.as_ref().and_then(|name| view.agents.agent(name));
    let wait = wait.map_or(15 * 60 * 1000, |agent| agent.approval_ms);
    let asked = ApprovalAsked {
        tool_call_id: call.id().clone(),
        tool,
        arguments_hash: arguments_hash(&call.requested.arguments),
        fingerprint: terms.fingerprint.clone(),
        expires: view.now.after(Duration::from_millis(wait)),
        because: call.requested.asked_because.clone().unwrap_or_default(),
    };
    Decision::fact(Branch::AskApproval, Fact::ApprovalAsked(asked))
}

fn dispatch(view: &View<'_>, call: &Call, branch: Branch, by: Option<Approved>) -> Decision {
    let place = CallPlace { run: call.run, turn: call.turn, position: call.position };
    match tool_call(view.thread, place, &call.requested, by, view.now, view.spans) {
        Some(record) => Decision::new(branch, Step::Dispatch(Box::new(record))),
        None => unknown(call),
    }
}

/// A requested call without a valid tool name or terms cannot have been accepted; answering it
/// keeps the thread alive should such a record ever be read.
fn unknown(call: &Call) -> Decision {
    never(
        Branch::Complete,
        call,
        ErrorCode::UnknownTool,
        "The tool is not known; nothing happened.",
    )
}

/// Where a call stands in its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallPlace {
    /// The run.
    pub run: u32,
    /// The turn.
    pub turn: u32,
    /// Place in the reply.
    pub position: u32,
}

/// The record that workers get.
pub fn tool_call(
    thread: &Thread,
    place: CallPlace,
    requested: &RequestedCall,
    approved: Option<Approved>,
    now: Timestamp,
    spans: Spans,
) -> Option<ToolCall> {
    let terms = requested.terms.clone()?;
    let wait = terms.deadlines.start_ms.map_or(spans.schedule_to_start, Duration::from_millis);
    let start_by = now.after(wait);
    let takes = total_time(Duration::from_millis(terms.timeout_ms), &terms.retry, terms.deadlines);
    let deadline = start_by.after(takes).after(spans.grace);
    Some(ToolCall {
        tool_call_id: requested.tool_call_id.clone(),
        run: place.run,
        turn: place.turn,
        position: place.position,
        tool: ToolName::new(&*requested.tool).ok()?,
        arguments_hash: arguments_hash(&requested.arguments),
        arguments: requested.arguments.clone(),
        terms,
        start_by,
        deadline,
        idempotency_key: format!("{}-{}", thread.place.thread, requested.tool_call_id),
        approved,
        opaque: requested.opaque.clone(),
    })
}

/// What the planner keeps of a contract with a call.
pub fn terms(contract: &ToolContract) -> Terms {
    Terms {
        effect: contract.effect,
        fingerprint: contract.fingerprint.clone(),
        timeout_ms: contract.timeout_ms,
        retry: contract.retry,
        deadlines: contract.deadlines,
    }
}

/// Why a person has to agree to a call of this tool, if one has to; no words where each call asks. A
/// condition that cannot be compiled or decided asks.
pub fn asks(tool: &Tool, arguments: &Map<String, Value>, tainted: bool) -> Option<String> {
    match (&tool.contract.approval, &tool.rule) {
        (Approval::Never, _) => None,
        (Approval::Always, _) => Some(String::new()),
        (Approval::WhenTainted, _) => {
            tainted.then(|| "text from outside has entered the conversation".to_owned())
        }
        (Approval::When(text), None) => Some(format!("the condition `{text}` cannot be read")),
        (Approval::When(_), Some(rule)) => match rule.judge(arguments, tainted) {
            Verdict::Go => None,
            Verdict::Ask(why) => Some(why),
        },
    }
}

fn overdue(view: &View<'_>, call: &Call, dispatched: &ToolCall) -> Option<Decision> {
    if deadline(view.thread, call).is_none_or(|at| view.now < at) {
        return None;
    }
    if !call.needs_start() {
        let text = format!(
            "No answer within {} s; the call is given up.",
            dispatched.deadline.since(dispatched.start_by).as_secs()
        );
        let observation = Observation::synthesised(call.id().clone(), ErrorCode::TimedOut, text);
        return Some(closed(Branch::OverdueRepeatable, observation));
    }
    Some(match &call.start {
        StartState::None => Decision::new(Branch::OverdueBar, Step::Bar(call.id().clone())),
        StartState::Barred => {
            let text = "No worker started the call in time; it was barred and never happened.";
            never(Branch::OverdueBarred, call, ErrorCode::Unavailable, text)
        }
        StartState::BarredAfterCheck => {
            let observation = checked(call, ErrorCode::Unavailable);
            closed(Branch::OverdueBarred, observation)
        }
        StartState::Started { started, .. } => {
            let text = in_doubt_text(started);
            let observation = Observation::synthesised(call.id().clone(), ErrorCode::InDoubt, text);
            closed(Branch::OverdueStarted, observation.with_receipt(Receipt::Unknown))
        }
    })
}

/// When, where and until when an effect could land.
pub fn in_doubt_text(started: &Started) -> String {
    format!(
        "IN DOUBT: attempt {} began on host {} (worker {}) at {} and sent no result. Its effect may \
         have happened; it could still land until {} (Unix ms). Check the real state before \
         repeating the call.",
        started.attempt, started.host, started.worker, started.at, started.until
    )
}

/// The answer of a call whose attempts a worker has checked and barred, when the worker's own answer
/// does not come.
pub(crate) fn checked(call: &Call, code: ErrorCode) -> Observation {
    let text = "The call had started; a check then found that its effect did not happen, and no \
                further attempt is made.";
    let observation = Observation::synthesised(call.id().clone(), code, text);
    observation.with_receipt(Receipt::StoppedBeforeEffect)
}

fn never(branch: Branch, call: &Call, code: ErrorCode, text: &str) -> Decision {
    let observation = Observation::synthesised(call.id().clone(), code, text);
    closed(branch, observation.with_receipt(Receipt::NeverStarted))
}

/// A decision to answer a call without a worker.
pub fn closed(branch: Branch, observation: Observation) -> Decision {
    Decision::fact(branch, Fact::CallClosed { observation })
}

/// What a bar has to expect on the call's start subject.
pub fn bar_fence(call: &Call) -> Sequence {
    match &call.start {
        StartState::Started { sequence, .. } => *sequence,
        StartState::None | StartState::Barred | StartState::BarredAfterCheck => Sequence::NONE,
    }
}

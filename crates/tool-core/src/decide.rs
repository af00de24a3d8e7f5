//! The decision table: from what is known of a call to the next step.
//!
//! A delivery proves nothing: it may be late, doubled, or a replay of history. So a call is looked
//! up before it runs, in an order that makes the common case short, and what must not happen twice
//! is decided by the call's start subject alone:
//!
//! - Nothing starts after `start_by`, whatever a delivery count says.
//! - A start of somebody else is waited for until every live worker has killed it.
//! - A worker that refuses a call whose start is a record bars it first, so that no other worker
//!   starts what the model was told never happened.

use std::time::Duration;

use proto::call::{Started, ToolCall};
use proto::ids::{InstanceId, Sequence};
use proto::observation::Observation;
use proto::time::Timestamp;
use proto::tool::{Effect, ToolContract};

use crate::answer::{self, Answer, Earlier, Refusal};
use crate::bound;
use crate::doubt;
use crate::outcome::Probed;
use crate::resource::Busy;

/// How long a delivery rests when another one of the same call is being worked on here.
const RUNNING_HERE: Duration = Duration::from_secs(5);
/// How long a delivery rests when a store does not answer.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// The least time that a delivery rests.
const LEAST_WAIT: Duration = Duration::from_millis(100);
/// The longest time that a delivery rests before it is looked at again.
const LONGEST_WAIT: Duration = Duration::from_mins(1);

/// What the journal says of a call that is late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum History {
    /// Nobody has answered.
    Open,
    /// A planner closed it; a worker's result would still be news.
    Closed,
    /// A worker's observation is there.
    Observed,
}

/// What lies on the call's start subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartState {
    /// Nothing.
    None,
    /// An attempt began.
    Started {
        /// Where the record lies.
        sequence: Sequence,
        /// What it says.
        started: Started,
        /// Whether this process wrote it and knows that the effect never began.
        unused: bool,
    },
    /// The call never starts.
    Barred,
}

/// Whether working memory kept a result of the call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It did not.
    Nothing,
    /// It does not answer.
    Unknown,
    /// This one.
    Result(Box<Observation>),
}

/// Who works on a repeatable call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lease {
    /// This delivery.
    Ours,
    /// Somebody else, for this long.
    Held(Duration),
    /// Working memory does not answer; such a call runs all the same.
    Unknown,
}

/// Whether an operator and the tool's breaker let a call begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gate {
    /// It is closed, or this call is the probe of a half-open one.
    Open,
    /// It is open, or another call is the probe.
    Shut,
    /// An operator holds the call back, and in which words.
    Frozen(String),
}

/// Who executes a read that equal calls share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Share {
    /// This call.
    Lead,
    /// Another one, for this long at most.
    Held(Duration),
    /// Another one did, and this is what came of it for this call.
    Kept(Box<Observation>),
    /// Working memory does not answer; such a call executes by itself.
    Unknown,
}

/// Whether there is room for the call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Room {
    /// There is.
    Free,
    /// There is none at the moment, and what is used up.
    Full(String),
}

/// Who has the resource that the call changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resource {
    /// This call.
    Ours,
    /// Somebody else, or nobody because it rests.
    Busy(Busy),
}

/// What else a tool wants to be known before one of its calls begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// Equal calls share a result.
    pub share: bool,
    /// Its calls may find no room.
    pub room: bool,
    /// It changes a resource, one mutation at a time.
    pub resource: bool,
}

/// Everything known of a call. What is `None` was not looked at yet.
#[derive(Clone, Debug)]
pub struct Known<'a> {
    /// The call as it was dispatched.
    pub call: &'a ToolCall,
    /// The tool as this worker has it.
    pub tool: &'a ToolContract,
    /// What is wrong with the arguments, by this worker's schema.
    pub argument_problems: Option<String>,
    /// This worker.
    pub me: &'a InstanceId,
    /// Server time.
    pub now: Timestamp,
    /// Whether the call was delivered before, as far as the bus remembers.
    pub again: bool,
    /// Whether another delivery of the call is being worked on in this process.
    pub running_here: bool,
    /// What the journal says; only looked at when the call is late.
    pub history: Option<History>,
    /// The result that working memory kept.
    pub done: Option<Kept>,
    /// The start subject.
    pub start: Option<StartState>,
    /// Whether the call was cancelled.
    pub cancelled: Option<bool>,
    /// The lease.
    pub lease: Option<Lease>,
    /// Operator and breaker.
    pub gate: Option<Gate>,
    /// How often it was delivered, as far as the bus remembers.
    pub deliveries: u64,
    /// Why it is not the call that was agreed to.
    pub unbound: Option<String>,
    /// What else the tool wants to be known.
    pub wants: Wants,
    /// The shared read.
    pub share: Option<Share>,
    /// Places, memory and disk.
    pub room: Option<Room>,
    /// The resource.
    pub resource: Option<Resource>,
    /// What a check found after the newest start.
    pub probed: Option<Probed>,
}

impl<'a> Known<'a> {
    /// What a fresh delivery tells.
    pub fn new(
        call: &'a ToolCall,
        tool: &'a ToolContract,
        me: &'a InstanceId,
        now: Timestamp,
    ) -> Self {
        Self {
            call,
            tool,
            argument_problems: None,
            me,
            now,
            again: false,
            running_here: false,
            history: None,
            done: None,
            start: None,
            cancelled: None,
            lease: None,
            gate: None,
            deliveries: 1,
            unbound: bound::problem(call, tool),
            wants: Wants::default(),
            share: None,
            room: None,
            resource: None,
            probed: None,
        }
    }

    /// What repeating does: the stricter of what planner and worker believe.
    pub fn effect(&self) -> Effect {
        self.call.terms.effect.max(self.tool.effect)
    }

    /// Whether the call may begin no more after this long.
    fn ends_within(&self, span: Duration) -> bool {
        self.now.after(span) > self.call.start_by
    }

    fn is_late(&self) -> bool {
        self.now > self.call.start_by
    }

    /// The attempts on the start subject.
    fn newest(&self) -> (u32, Sequence) {
        match &self.start {
            Some(StartState::Started { sequence, started, .. }) => (started.attempt, *sequence),
            Some(StartState::None | StartState::Barred) | None => (0, Sequence::NONE),
        }
    }
}

/// Something to find out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Read the thread from the call on: was it answered?
    History,
    /// Ask working memory for a kept result.
    Done,
    /// Read the start subject.
    Start,
    /// Ask working memory for a cancel mark.
    Cancelled,
    /// Take the lease.
    Lease,
    /// See whether an operator holds it back, then judge the breaker; take its probe when it is half open.
    Gate,
    /// Join the calls that want the same read.
    Share,
    /// See whether there is a place, memory and disk for it, and take the place.
    Room,
    /// Take the resource that it changes.
    Resource,
    /// Run the tool's check.
    Probe,
}

/// The next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Find something out, then ask again.
    Look(Look),
    /// Give the delivery back for this long.
    Wait(Duration),
    /// Acknowledge: nothing is left to say.
    Drop,
    /// Publish the kept result again, then acknowledge.
    Republish(Box<Observation>),
    /// Bar the call's start subject, whose last record is `expected`. When that lands, answer; when
    /// somebody else was first, look at the start again.
    Bar {
        /// What the fence expects.
        expected: Sequence,
        /// The answer of a call that never starts.
        answer: Answer,
    },
    /// Publish an answer, then acknowledge.
    Answer(Answer),
    /// Make everything ready, append the start record, run.
    Start {
        /// The attempt.
        attempt: u32,
        /// What the fence expects.
        expected: Sequence,
    },
    /// Run, from attempt 1.
    Run,
}

/// The next step of a call.
pub fn decide(known: &Known<'_>) -> Step {
    if known.running_here {
        return Step::Wait(RUNNING_HERE);
    }
    match known.history {
        None if known.is_late() => return Step::Look(Look::History),
        Some(History::Observed) => return Step::Drop,
        Some(History::Open | History::Closed) | None => {}
    }
    match &known.done {
        None => return Step::Look(Look::Done),
        Some(Kept::Result(observation)) => return Step::Republish(observation.clone()),
        Some(Kept::Nothing | Kept::Unknown) => {}
    }
    if !known.effect().needs_start() {
        return before_run(known).unwrap_or(Step::Run);
    }
    match &known.start {
        None => Step::Look(Look::Start),
        Some(StartState::Barred) => Step::Drop,
        Some(StartState::None) => before_start(known),
        Some(StartState::Started { unused: true, .. }) => {
            Step::Answer(answer::stopped_before_effect())
        }
        Some(StartState::Started { started, .. }) => after_start(known, started),
    }
}

/// A start lies there and no result: wait it out, then check or doubt.
fn after_start(known: &Known<'_>, started: &Started) -> Step {
    // An attempt of this process that no delivery works on is over.
    if started.worker != *known.me && known.now < started.until {
        return wait(started.until.since(known.now));
    }
    if known.history == Some(History::Closed) {
        return Step::Drop;
    }
    // A result may be kept where nobody answers for the moment.
    if known.done == Some(Kept::Unknown) && known.now < known.call.deadline {
        return wait(ASK_AGAIN);
    }
    if known.effect() == Effect::Irreversible {
        return Step::Answer(doubt::of_start(started));
    }
    match &known.probed {
        None => Step::Look(Look::Probe),
        Some(Probed::Happened(output)) => Step::Answer(answer::effect_found(output)),
        Some(Probed::Unclear(_)) => Step::Answer(doubt::of_start(started)),
        Some(Probed::NotHappened) => again(known, started),
    }
}

/// The check found no effect: another attempt, if there is one left.
fn again(known: &Known<'_>, started: &Started) -> Step {
    if started.attempt >= known.call.terms.retry.max_attempts.max(1) {
        return refuse(known, &Refusal::UsedUp);
    }
    before_start(known)
}

fn before_start(known: &Known<'_>) -> Step {
    let (made, expected) = known.newest();
    before_run(known).unwrap_or_else(|| Step::Start { attempt: made.saturating_add(1), expected })
}

/// What stands between a call and its next attempt.
fn before_run(known: &Known<'_>) -> Option<Step> {
    if known.history == Some(History::Closed) {
        return Some(Step::Drop);
    }
    if known.is_late() {
        return Some(refuse(known, &Refusal::TooLate));
    }
    if known.call.terms.fingerprint != known.tool.fingerprint {
        return Some(refuse(known, &Refusal::VersionMismatch));
    }
    if let Some(why) = &known.unbound {
        return Some(refuse(known, &Refusal::NotApproved(why.clone())));
    }
    if let Some(problems) = &known.argument_problems {
        return Some(refuse(known, &Refusal::InvalidArguments(problems.clone())));
    }
    match known.cancelled {
        None => return Some(Step::Look(Look::Cancelled)),
        Some(true) => return Some(refuse(known, &Refusal::Cancelled)),
        Some(false) => {}
    }
    let needs_lease = !known.effect().needs_start();
    match known.lease {
        None if needs_lease => return Some(Step::Look(Look::Lease)),
        Some(Lease::Held(left)) => return Some(wait(left)),
        Some(Lease::Ours | Lease::Unknown) | None => {}
    }
    match &known.gate {
        None => Some(Step::Look(Look::Gate)),
        Some(Gate::Frozen(words)) => Some(refuse(known, &Refusal::Frozen(words.clone()))),
        Some(Gate::Shut) => Some(refuse(known, &Refusal::BreakerOpen)),
        Some(Gate::Open) => turn(known),
    }
}

/// What a call waits for that others have at the moment.
fn turn(known: &Known<'_>) -> Option<Step> {
    match &known.share {
        None if known.wants.share => return Some(Step::Look(Look::Share)),
        Some(Share::Kept(observation)) => return Some(Step::Republish(observation.clone())),
        // Whoever cannot wait any longer executes by itself: that changes nothing.
        Some(Share::Held(left)) if !known.ends_within(poll(known)) => {
            return Some(wait(poll(known).min(*left)));
        }
        Some(Share::Held(_) | Share::Lead | Share::Unknown) | None => {}
    }
    match &known.room {
        None if known.wants.room => return Some(Step::Look(Look::Room)),
        Some(Room::Full(words)) if known.ends_within(poll(known)) => {
            return Some(refuse(known, &Refusal::Exhausted(words.clone())));
        }
        Some(Room::Full(_)) => return Some(wait(poll(known))),
        Some(Room::Free) | None => {}
    }
    match &known.resource {
        None if known.wants.resource => Some(Step::Look(Look::Resource)),
        Some(Resource::Busy(busy)) => {
            let rest = busy.rests.unwrap_or_else(|| poll(known));
            Some(if known.ends_within(rest) {
                refuse(known, &Refusal::Conflict(busy.words.clone()))
            } else {
                wait(rest)
            })
        }
        Some(Resource::Ours) | None => None,
    }
}

/// How long a call rests that waits for others: longer each time.
fn poll(known: &Known<'_>) -> Duration {
    let doublings = known.deliveries.saturating_sub(1).min(4);
    LEAST_WAIT.saturating_mul(1 << doublings)
}

/// Answers a call that is not started; one whose start is a record is barred first.
fn refuse(known: &Known<'_>, refusal: &Refusal) -> Step {
    let effect = known.effect();
    if !effect.needs_start() {
        let earlier = if known.again { Earlier::Unknown(effect) } else { Earlier::None };
        return Step::Answer(refusal.answer(earlier));
    }
    let (made, expected) = known.newest();
    let earlier = if made > 0 { Earlier::Checked(made) } else { Earlier::None };
    Step::Bar { expected, answer: refusal.answer(earlier) }
}

fn wait(span: Duration) -> Step {
    Step::Wait(span.clamp(LEAST_WAIT, LONGEST_WAIT))
}

#[cfg(test)]
mod tests;

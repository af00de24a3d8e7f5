//! What a decision is made from, and what a decision is.

use std::time::Duration;

use proto::agent::Agent;
use proto::call::ToolCall;
use proto::fact::Fact;
use proto::ids::{AgentName, InstanceId, Sequence, ToolCallId};
use proto::live::Hint;
use proto::time::Timestamp;

use crate::thread::Thread;

/// Why the planner looks at the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wake {
    /// The record whose delivery is held.
    pub sequence: Sequence,
    /// Whether that record is a tick.
    pub tick: bool,
}

/// What is known of the owner of an open turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Nobody has asked.
    Unasked,
    /// It works on the turn.
    Working,
    /// It is gone, or has let the turn go, or does not answer.
    Gone,
}

/// What is known of the thread's schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Armed {
    /// Nothing; if a deadline is open, it has to be written before the delivery is let go.
    Unknown,
    /// It fires at this time.
    At(Timestamp),
    /// Whoever opened the deadlines holds a delivery until the schedule is written.
    ByOthers,
}

/// What the planner may do for an agent, by name.
pub trait Agents {
    /// The agent, when this planner has its file.
    fn agent(&self, name: &AgentName) -> Option<&Agent>;
}

/// Spans that a decision uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spans {
    /// How long a call may wait for a worker.
    pub schedule_to_start: Duration,
    /// Added to a deadline for the way of the observation.
    pub grace: Duration,
    /// How long a model request may take in all.
    pub turn: Duration,
    /// Pause before a delivery is looked at again.
    pub hand_back: Duration,
    /// How long a run waits for a planner that knows its agent.
    pub agent_wait: Duration,
}

impl Default for Spans {
    fn default() -> Self {
        Self {
            schedule_to_start: Duration::from_mins(1),
            grace: Duration::from_secs(2),
            turn: Duration::from_mins(5),
            hand_back: Duration::from_secs(2),
            agent_wait: Duration::from_mins(10),
        }
    }
}

/// All that a decision is made from.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The thread, folded at least up to the held delivery and the planner's own last append.
    pub thread: &'a Thread,
    /// Server time; never earlier than the time of the waking record.
    pub now: Timestamp,
    /// This planner.
    pub me: &'a InstanceId,
    /// Why it looks.
    pub wake: Wake,
    /// The `turn_started` that this handling appended and has not asked the model for yet.
    pub begun: Option<Sequence>,
    /// The owner of the open turn, when there is one.
    pub owner: Owner,
    /// The schedule.
    pub armed: Armed,
    /// Known agents.
    pub agents: &'a dyn Agents,
    /// Text and reasoning of the open turn as far as somebody kept them.
    pub kept: (&'a str, &'a str),
    /// How the last answer did against the agent's output schema, when it was checked.
    pub evaluated: Option<&'a Evaluated>,
    /// Spans.
    pub spans: Spans,
}

/// How an answer did against its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evaluated {
    /// It fits, or there is nothing to fit.
    Fits,
    /// It does not, and why.
    Breaks(String),
    /// The check took too long; the answer is accepted and marked.
    Overrun,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Append a fact, fenced by the chain.
    Fact(Box<Fact>),
    /// Append a tool call, fenced by the chain.
    Dispatch(Box<ToolCall>),
    /// Append a bar to a call's start subject, fenced by the sequence that stands there.
    Bar(ToolCallId),
    /// Write the schedule.
    Arm(Timestamp),
    /// Ask the owner of the open turn whether it still works on it.
    AskOwner(InstanceId),
    /// Check the answer against this schema, within the evaluation's own deadline.
    Evaluate,
    /// Say a hint; losing it is allowed.
    Hint(Hint),
    /// Make the model request of the open turn, which is ours.
    Reason,
    /// Give the delivery back for a while.
    HandBack(Duration),
    /// Nothing is left to do: acknowledge the delivery.
    Rest,
}

/// Defines the closed set of reasons with their names.
macro_rules! branches {
    ($($variant:ident => $name:literal;)*) => {
        /// Which rule decided; for traces, and so that a simulation can tell what it never reached.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[expect(missing_docs, reason = "each name is its own sentence")]
        pub enum Branch { $($variant,)* }

        impl Branch {
            /// All branches.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The name in traces.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }
        }
    };
}

branches! {
    Park => "park";
    CancelUnstarted => "cancel_unstarted";
    SealStopped => "seal_stopped";
    CancelWaiting => "cancel_waiting";
    CancelBar => "cancel_bar";
    CancelBarred => "cancel_barred";
    CancelRepeatable => "cancel_repeatable";
    CancelStarted => "cancel_started";
    CancelDone => "cancel_done";
    Reason => "reason";
    OwnerWorks => "owner_works";
    NotMine => "not_mine";
    AskOwner => "ask_owner";
    SealLost => "seal_lost";
    StartAgain => "start_again";
    CrashLoop => "crash_loop";
    Complete => "complete_dispatch";
    AskApproval => "ask_approval";
    PreApproved => "pre_approved";
    Approved => "approved";
    DeniedByPerson => "denied";
    ApprovalExpired => "approval_expired";
    OverdueRepeatable => "overdue_repeatable";
    OverdueBar => "overdue_bar";
    OverdueBarred => "overdue_barred";
    OverdueStarted => "overdue_started";
    Arm => "arm";
    Wait => "wait";
    Evaluate => "evaluate";
    Repair => "repair";
    Verify => "verify";
    Finish => "finish";
    Limit => "limit";
    UserEnded => "user_ended";
    NothingNew => "nothing_new";
    NoAgent => "no_agent";
    AwaitAgent => "await_agent";
    NextTurn => "next_turn";
    NewRun => "new_run";
    AtRest => "at_rest";
}

/// One step and the rule that chose it.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// What to do.
    pub step: Step,
    /// Why.
    pub branch: Branch,
}

impl Decision {
    /// A decision.
    pub fn new(branch: Branch, step: Step) -> Self {
        Self { step, branch }
    }

    /// A decision to append a fact.
    pub fn fact(branch: Branch, fact: Fact) -> Self {
        Self::new(branch, Step::Fact(Box::new(fact)))
    }
}

//! Where a record lies: `sy.<partition>.<tenant>.<thread>.<leaf>`.

use std::fmt;
use std::str::FromStr;

use crate::ids::{Partition, TenantId, ThreadRef, ToolCallId, ToolName};

/// The last part of a subject: who writes there and who reads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Leaf {
    /// `in`: inputs, from gateways and parent threads to planners.
    In,
    /// `plan.fact`: what a planner recorded for readers.
    Fact,
    /// `plan.tool_call.<tool>`: a call to execute, from a planner to the workers of that tool.
    ToolCall(ToolName),
    /// `start.<tool_call_id>`: an attempt started, or the call is barred.
    Start(ToolCallId),
    /// `obs`: observations, from workers to planners.
    Observation,
    /// `sched`: the one message schedule of the thread.
    Schedule,
    /// `tick`: a deadline was reached.
    Tick,
}

impl Leaf {
    /// Whether the record is part of the fenced chain `plan.>`.
    pub fn is_plan(&self) -> bool {
        match self {
            Self::Fact | Self::ToolCall(_) => true,
            Self::In | Self::Start(_) | Self::Observation | Self::Schedule | Self::Tick => false,
        }
    }
}

/// A full subject.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subject {
    /// The thread.
    pub thread: ThreadRef,
    /// The place within it.
    pub leaf: Leaf,
}

impl Subject {
    /// The subject of `leaf` in `thread`.
    pub fn new(thread: ThreadRef, leaf: Leaf) -> Self {
        Self { thread, leaf }
    }
}

/// The common head of all subjects of a thread.
pub fn thread_prefix(thread: &ThreadRef) -> String {
    format!("sy.{}.{}.{}", thread.partition.0, thread.tenant, thread.thread)
}

/// The filter of a thread's fenced chain.
pub fn plan_filter(thread: &ThreadRef) -> String {
    format!("{}.plan.>", thread_prefix(thread))
}

/// The plain subject of a thread's live text.
pub fn live_subject(thread: &ThreadRef) -> String {
    format!("sylive.{}.{}", thread.tenant, thread.thread)
}

/// The plain subject of a thread's cancel hints.
pub fn control_subject(thread: &ThreadRef) -> String {
    format!("syctl.{}.{}", thread.tenant, thread.thread)
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = thread_prefix(&self.thread);
        match &self.leaf {
            Leaf::In => write!(f, "{head}.in"),
            Leaf::Fact => write!(f, "{head}.plan.fact"),
            Leaf::ToolCall(tool) => write!(f, "{head}.plan.tool_call.{tool}"),
            Leaf::Start(id) => write!(f, "{head}.start.{id}"),
            Leaf::Observation => write!(f, "{head}.obs"),
            Leaf::Schedule => write!(f, "{head}.sched"),
            Leaf::Tick => write!(f, "{head}.tick"),
        }
    }
}

/// A subject that is none of ours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a journal subject")]
pub struct BadSubject(pub String);

impl FromStr for Subject {
    type Err = BadSubject;
    fn from_str(text: &str) -> Result<Self, BadSubject> {
        // One place has one spelling: `+1`, `01` and lowercase ids are none of ours.
        let subject = parse(text).filter(|subject| subject.to_string() == text);
        subject.ok_or_else(|| BadSubject(text.chars().take(200).collect()))
    }
}

fn parse(text: &str) -> Option<Subject> {
    let rest = text.strip_prefix("sy.")?;
    let mut parts = rest.splitn(4, '.');
    let partition = Partition(parts.next()?.parse().ok()?);
    let tenant = TenantId::new(parts.next()?).ok()?;
    let thread = parts.next()?.parse().ok()?;
    let leaf = parse_leaf(parts.next()?)?;
    Some(Subject { thread: ThreadRef { partition, tenant, thread }, leaf })
}

fn parse_leaf(text: &str) -> Option<Leaf> {
    match text {
        "in" => return Some(Leaf::In),
        "plan.fact" => return Some(Leaf::Fact),
        "obs" => return Some(Leaf::Observation),
        "sched" => return Some(Leaf::Schedule),
        "tick" => return Some(Leaf::Tick),
        _ => {}
    }
    if let Some(tool) = text.strip_prefix("plan.tool_call.") {
        return ToolName::new(tool).ok().map(Leaf::ToolCall);
    }
    text.strip_prefix("start.").and_then(|id| ToolCallId::new(id).ok()).map(Leaf::Start)
}

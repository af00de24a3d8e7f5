//! The states of a run as readers and metrics see them. Derived from the fold, never stored.

use std::fmt;

use crate::thread::Thread;

/// Where a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// An input waits, no turn has begun.
    Initializing,
    /// Inputs and observations are being taken in.
    Observing,
    /// A model request is open.
    Reasoning,
    /// Calls are open.
    Acting,
    /// Results and answer are being checked.
    Evaluating,
    /// The run is over.
    Terminating,
}

impl Phase {
    /// The word in events and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Initializing => "initializing",
            Self::Observing => "observing",
            Self::Reasoning => "reasoning",
            Self::Acting => "acting",
            Self::Evaluating => "evaluating",
            Self::Terminating => "terminating",
        }
    }

    /// Whether `next` may come directly after this phase. A phase may always last.
    ///
    /// A reply that asks for nothing goes from reasoning to evaluating; a cut reply, a cancel or an
    /// error may end a run from any phase.
    pub fn may_become(self, next: Self) -> bool {
        if self == next || next == Self::Terminating {
            return true;
        }
        match self {
            Self::Initializing => matches!(next, Self::Observing | Self::Reasoning),
            Self::Observing => matches!(next, Self::Reasoning),
            Self::Reasoning => matches!(next, Self::Acting | Self::Evaluating),
            Self::Acting => matches!(next, Self::Evaluating),
            Self::Evaluating => matches!(next, Self::Observing | Self::Reasoning),
            Self::Terminating => matches!(next, Self::Initializing | Self::Reasoning),
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The phase of a thread.
pub fn phase(thread: &Thread) -> Phase {
    let Some(run) = &thread.run else {
        let fresh = thread.unread.is_empty();
        return if fresh { Phase::Terminating } else { Phase::Initializing };
    };
    if run.open.is_some() {
        return Phase::Reasoning;
    }
    if thread.open_calls().next().is_some() { Phase::Acting } else { Phase::Evaluating }
}

/// What a run in some phase waits for; empty when it waits for nothing.
pub fn waiting_for(thread: &Thread, calls_begun: bool) -> &'static str {
    match phase(thread) {
        Phase::Reasoning if calls_begun => "waiting_for_tool_calls",
        Phase::Reasoning => "waiting_for_reasoning",
        Phase::Acting => "waiting_for_observation",
        Phase::Initializing | Phase::Observing | Phase::Evaluating | Phase::Terminating => "",
    }
}

//! The rules by name, and what it means to break one.

use std::fmt;

use proto::ids::Sequence;

/// Defines the closed set once: variant, stable name, the rule.
macro_rules! rules {
    ($($variant:ident => $name:literal, $rule:literal;)*) => {
        /// One rule that every history keeps.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Invariant {
            $(#[doc = $rule] $variant,)*
        }

        impl Invariant {
            /// All rules.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The stable name: a metric label, a line of a report.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            /// The rule in one sentence.
            pub fn rule(self) -> &'static str {
                match self { $(Self::$variant => $rule),* }
            }
        }
    };
}

rules! {
    SequencesIncrease => "sequences_increase", "Each record lies after the one before it.";
    OneObservation => "one_observation", "Every call has exactly one observation that counts, and at rest no call is open.";
    NoDoubleDispatch => "no_double_dispatch", "No call is dispatched twice.";
    CallsAreNamed => "calls_are_named", "A turn that ends names every call that was dispatched for it, unchanged.";
    NamedCallsAreDispatched => "named_calls_are_dispatched", "A call that a turn sends to a worker is in the journal, or answered, before the next turn or the run's end.";
    IdsAreUnique => "ids_are_unique", "A tool call id is used for one call of the thread.";
    ApprovalBindsArguments => "approval_binds_arguments", "A call that waits for approval is dispatched only with an approval of exactly its arguments.";
    NoSecondStart => "no_second_start", "No irreversible call has two starts.";
    BarIsFinal => "bar_is_final", "Nothing starts after its bar.";
    AttemptsAreCounted => "attempts_are_counted", "Starts belong to a dispatched call and are numbered 1, 2 and so on.";
    NoStartAfterAnswer => "no_start_after_answer", "A call whose start is a record does not begin after it was answered.";
    TurnsAreOrdered => "turns_are_ordered", "Turns are numbered, one is open at a time, and only the open one ends.";
    TurnStartsAreBounded => "turn_starts_are_bounded", "A turn is started at most three times, again only while nothing was dispatched for it.";
    OneActiveRun => "one_active_run", "Runs are numbered and a thread has at most one active run.";
    NothingAfterRunEnd => "nothing_after_run_end", "No fact and no dispatch belongs to a finished run.";
    SeenAdvances => "seen_advances", "What a turn or a run's end has seen lies before it and never shrinks.";
    TranscriptIsValid => "transcript_is_valid", "A turn starts only when every earlier call was answered within what the turn has seen.";
    InputsAreAnswered => "inputs_are_answered", "At rest every accepted input was read by a turn or ended with its run.";
    EveryRunEnds => "every_run_ends", "At rest no run is active.";
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which rule.
    pub invariant: Invariant,
    /// The record that breaks it; at rest, the record that was left undone.
    pub sequence: Sequence,
    /// What was found, for people.
    pub why: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}: {}", self.invariant, self.sequence, self.why)
    }
}

/// Collects what one record breaks.
#[derive(Debug)]
pub(crate) struct Report {
    at: Sequence,
    pub(crate) found: Vec<Violation>,
}

impl Report {
    pub(crate) fn at(sequence: Sequence) -> Self {
        Self { at: sequence, found: Vec::new() }
    }

    pub(crate) fn breaks(&mut self, invariant: Invariant, why: impl Into<String>) {
        self.breaks_at(invariant, self.at, why);
    }

    pub(crate) fn breaks_at(
        &mut self,
        invariant: Invariant,
        sequence: Sequence,
        why: impl Into<String>,
    ) {
        self.found.push(Violation { invariant, sequence, why: why.into() });
    }
}

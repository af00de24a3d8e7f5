//! Every metric of a planner: names, units, labels. `docs/metrics.md` explains them.

use std::time::Duration;

use invariants::Violation;
use planner_core::phase::{Phase, path};
use planner_core::prompt::tokens;
use prometheus::{
    Gauge, Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Registry,
};
use proto::error_code::ErrorCode;
use proto::fact::{EndReason, Estimator, Fact, Outcome, RunFinished, Usage, Verification};
use proto::notice::Deadline;
use service_runtime::metrics::Maker;

/// Tokens of reasoning that the prompt asks to stay below.
const LONG_THOUGHT: usize = 500;
const CLOCK_AHEAD: &str =
    "By how much this process's clock is ahead of the bus's, as last measured.";
const TURNS: &[f64] = &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0, 50.0];
const TOKENS: &[f64] =
    &[256.0, 1024.0, 4096.0, 8192.0, 16384.0, 32768.0, 65536.0, 131_072.0, 262_144.0, 1_048_576.0];
const SECONDS: &[f64] =
    &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0];

/// What a planner counts.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Registry,
    turns_per_run: Histogram,
    runs: IntCounterVec,
    ends: IntCounterVec,
    abnormal_ends: IntCounterVec,
    verified: IntCounterVec,
    context_tokens: Histogram,
    completion_tokens: IntCounter,
    spent_usd: Gauge,
    pub(crate) model_seconds: Histogram,
    delays: Delays,
    pub(crate) turns_in_flight: IntGauge,
    pub(crate) turn_slots: IntGauge,
    pub(crate) clock_ahead: Gauge,
    queue_wait: HistogramVec,
    deliveries: IntCounterVec,
    redeliveries: IntCounterVec,
    pub(crate) conflicts: IntCounter,
    pub(crate) takeovers: IntCounter,
    doubts: IntCounter,
    parked: IntCounter,
    pub(crate) late_results: IntCounter,
    phases: IntCounterVec,
    pub(crate) folds: Folds,
    pub(crate) memory: Memories,
    judged: IntCounter,
    violations: IntCounterVec,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

fn verified(make: &Maker) -> IntCounterVec {
    let help = "Answers that were verified, by what came of it.";
    make.counters("verified_answers_total", help, &["verified"])
}

fn abnormal_ends(make: &Maker) -> IntCounterVec {
    make.counters("abnormal_ends_total", "Runs that ended without an answer.", &["reason"])
}

impl Metrics {
    /// All at zero.
    pub fn new() -> Self {
        let make = Maker::new("planner");
        let queue: &[&str] = &["queue"];
        Self {
            registry: make.registry(),
            turns_per_run: make.histogram("turns_per_run", "Turns of a run that ended.", TURNS),
            runs: make.counters("runs_total", "Runs that ended.", &["outcome"]),
            ends: make.counters("run_ends_total", "Runs that ended, by why.", &["reason"]),
            verified: verified(&make),
            abnormal_ends: abnormal_ends(&make),
            context_tokens: make.histogram(
                "context_tokens",
                "Tokens of a model request, as its provider counted them.",
                TOKENS,
            ),
            completion_tokens: make.counter("completion_tokens_total", "Tokens models wrote."),
            spent_usd: make.amount("spent_usd", "Spent on models, as far as prices are known."),
            model_seconds: make.histogram(
                "model_seconds",
                "From the start of a turn's model request to its record.",
                SECONDS,
            ),
            delays: Delays::new(&make),
            turns_in_flight: make.gauge("turns_in_flight", "Model requests open now."),
            turn_slots: make.gauge("turn_slots", "Model requests that may be open at once."),
            clock_ahead: make.amount("clock_ahead_seconds", CLOCK_AHEAD),
            queue_wait: make.histograms(
                "queue_wait_seconds",
                "From a record's storage to its first delivery.",
                SECONDS,
                queue,
            ),
            deliveries: make.counters("deliveries_total", "Records delivered.", queue),
            redeliveries: make.counters(
                "redeliveries_total",
                "Records delivered that were delivered before.",
                queue,
            ),
            conflicts: make.counter("conflicts_total", "Appends that lost the fence."),
            takeovers: make.counter("takeovers_total", "Turns taken over from a gone planner."),
            doubts: make.counter("doubts_total", "Calls that were closed as in doubt."),
            parked: make.counter("parked_records_total", "Records set aside that nobody can read."),
            late_results: make
                .counter("late_results_total", "Results that came after their call was closed."),
            phases: make.counters(
                "phases_total",
                "Phases that runs entered, as this planner saw them.",
                &["phase"],
            ),
            folds: Folds::new(&make),
            memory: Memories::new(&make),
            judged: make.counter("judged_journals_total", "Journals held against the invariants."),
            violations: make.counters(
                "invariant_violations_total",
                "Broken invariants in journals of ended runs.",
                &["rule"],
            ),
        }
    }

    /// Where they are gathered.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Notes whether an endpoint of models is left alone because it kept failing.
    pub fn endpoint(&self, endpoint: &str, rests: bool) {
        self.delays.endpoint_rests.with_label_values(&[endpoint]).set(i64::from(rests));
    }

    /// Counts a deadline of a reply that ran out.
    pub(crate) fn deadline_passed(&self, deadline: Deadline) {
        self.delays.deadlines.with_label_values(&[deadline.as_str()]).inc();
    }

    /// Counts a fact that this planner appended.
    pub(crate) fn appended(&self, tally: Tally) {
        match tally {
            Tally::Run { turns, outcome, reason, verified } => {
                self.ends.with_label_values(&[reason]).inc();
                if let Some(verified) = verified {
                    self.verified.with_label_values(&[verified]).inc();
                }
                self.turns_per_run.observe(f64::from(turns));
                self.runs.with_label_values(&[outcome_name(outcome)]).inc();
                if outcome != Outcome::Answered {
                    self.abnormal_ends.with_label_values(&[reason]).inc();
                }
            }
            Tally::Turn(usage, thought) => {
                if thought > LONG_THOUGHT {
                    self.delays.long_reasonings.inc();
                }
                self.context_tokens.observe(whole(usage.prompt_tokens));
                self.completion_tokens.inc_by(usage.completion_tokens);
                self.spent_usd.add(whole(usage.micro_usd.unwrap_or(0)) / 1e6);
            }
            Tally::Doubt => self.doubts.inc(),
            Tally::Parked => self.parked.inc(),
            Tally::Nothing => {}
        }
    }

    /// Counts the phases that a thread passed from one look at it to the next.
    pub(crate) fn passed(&self, from: Phase, to: Phase) {
        for phase in path(from, to) {
            self.phases.with_label_values(&[phase.as_str()]).inc();
        }
    }

    /// Counts what a journal breaks.
    pub(crate) fn judged(&self, violations: &[Violation]) {
        self.judged.inc();
        for violation in violations {
            self.violations.with_label_values(&[violation.invariant.name()]).inc();
        }
    }

    /// Counts a delivery; only a first one tells how long its record waited.
    pub(crate) fn delivered(&self, queue: &str, count: u64, waited: Duration) {
        self.deliveries.with_label_values(&[queue]).inc();
        if count > 1 {
            self.redeliveries.with_label_values(&[queue]).inc();
        } else {
            self.queue_wait.with_label_values(&[queue]).observe(waited.as_secs_f64());
        }
    }
}

/// What is counted of replies that take longer.
#[derive(Clone, Debug)]
struct Delays {
    deadlines: IntCounterVec,
    endpoint_rests: IntGaugeVec,
    long_reasonings: IntCounter,
}

impl Delays {
    fn new(make: &Maker) -> Self {
        let late = "Deadlines of replies that ran out.";
        let rests = "1 while an endpoint that kept failing is left alone.";
        Self {
            deadlines: make.counters("model_deadlines_total", late, &["deadline"]),
            endpoint_rests: make.gauges("model_endpoint_rests", rests, &["endpoint"]),
            long_reasonings: make.counter(
                "long_reasonings_total",
                "Replies whose reasoning was longer than the prompt asks for.",
            ),
        }
    }
}

/// What is counted of long-term memory.
#[derive(Clone, Debug)]
pub(crate) struct Memories {
    pub(crate) recall_seconds: Histogram,
    pub(crate) recall_failures: IntCounter,
    pub(crate) indexed: IntCounter,
    pub(crate) forgotten: IntCounter,
    pub(crate) index_failures: IntCounter,
    pub(crate) indexed_to: IntGaugeVec,
}

impl Memories {
    fn new(make: &Maker) -> Self {
        let seconds = "From the question of a run that begins to its memories.";
        let to = "The last fact that was indexed, by its sequence.";
        Self {
            recall_seconds: make.histogram("recall_seconds", seconds, SECONDS),
            recall_failures: make
                .counter("recall_failures_total", "Runs that began without long-term memory."),
            indexed: make.counter("memory_indexed_total", "Pieces put into long-term memory."),
            forgotten: make.counter(
                "memory_late_total",
                "Pieces that came after they were forgotten, and were dropped.",
            ),
            index_failures: make
                .counter("memory_index_failures_total", "Looks of the indexer that failed."),
            indexed_to: make.gauges("memory_indexed_to", to, &["partition"]),
        }
    }
}

/// What is counted of folds.
#[derive(Clone, Debug)]
pub(crate) struct Folds {
    looks: IntCounterVec,
    records: IntCounter,
    pub(crate) kept: IntCounter,
    pub(crate) restored: IntCounter,
    pub(crate) checkpoints: IntCounter,
}

impl Folds {
    fn new(make: &Maker) -> Self {
        let looks = "Looks at a thread, by where its fold came from.";
        Self {
            looks: make.counters("folds_total", looks, &["from"]),
            records: make.counter("records_read_total", "Records read to fold threads."),
            kept: make.counter("snapshots_total", "Folds kept in working memory."),
            checkpoints: make
                .counter("checkpoints_total", "Threads whose older records were purged."),
            restored: make.counter("restored_total", "Lost tails that were restored."),
        }
    }

    /// Counts a fold.
    pub(crate) fn folded(&self, source: Source) {
        self.looks.with_label_values(&[source.as_str()]).inc();
    }

    /// Counts records that were read for a fold.
    pub(crate) fn read(&self, records: usize) {
        self.records.inc_by(u64::try_from(records).unwrap_or(u64::MAX));
    }
}

/// Where a fold came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// This process had it.
    Memory,
    /// Working memory had it.
    Snapshot,
    /// It was made from the first record on.
    Journal,
}

impl Source {
    fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Snapshot => "snapshot",
            Self::Journal => "journal",
        }
    }
}

/// What a fact adds, taken before it is appended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Tally {
    Run {
        turns: u32,
        outcome: Outcome,
        reason: &'static str,
        verified: Option<&'static str>,
    },
    /// What it cost, and the tokens of its reasoning.
    Turn(Usage, usize),
    Doubt,
    Parked,
    Nothing,
}

impl Tally {
    pub(crate) fn of(fact: &Fact) -> Self {
        match fact {
            Fact::RunFinished(finished) => Self::Run {
                turns: finished.turns,
                outcome: finished.outcome,
                reason: reason(finished),
                verified: finished.verification.as_ref().map(verified_name),
            },
            Fact::TurnCompleted(turn) => {
                Self::Turn(turn.usage, tokens(Estimator::Characters, &turn.reasoning))
            }
            Fact::CallClosed { observation } if observation.code == Some(ErrorCode::InDoubt) => {
                Self::Doubt
            }
            Fact::CallClosed { .. }
            | Fact::TurnStarted(_)
            | Fact::TurnSealed(_)
            | Fact::ApprovalAsked(_)
            | Fact::Restored(_)
            | Fact::Checkpoint(_) => Self::Nothing,
            Fact::Parked { .. } => Self::Parked,
        }
    }
}

/// No count comes near the limit.
fn whole(number: u64) -> f64 {
    u32::try_from(number).map_or_else(|_| f64::from(u32::MAX), f64::from)
}

fn outcome_name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Answered => "answered",
        Outcome::Failed => "failed",
        Outcome::Stopped => "stopped",
    }
}

fn verified_name(verification: &Verification) -> &'static str {
    match verification {
        Verification::Confirmed => "confirmed",
        Verification::Revised { .. } => "revised",
        Verification::Unfinished { .. } => "unfinished",
    }
}

/// The error's code where there is one.
fn reason(finished: &RunFinished) -> &'static str {
    match finished.reason {
        EndReason::Answer => "answer",
        EndReason::Confident => "confident",
        EndReason::NothingNew => "nothing_new",
        EndReason::UserEnded => "user_ended",
        EndReason::MaxTurns => "max_turns",
        EndReason::MaxTokens => "max_tokens",
        EndReason::MaxMoney => "max_money",
        EndReason::MaxWallTime => "max_wall_time",
        EndReason::MaxToolCalls => "max_tool_calls",
        EndReason::Cancelled => "cancelled",
        EndReason::Error => finished.code.map_or("error", ErrorCode::as_str),
    }
}

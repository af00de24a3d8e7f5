//! Draws what happens to each operation, and shows every record and ack to the judge.

use std::sync::Arc;
use std::time::Duration;

use ports::journal::Stored;
use ports::queues::Queue;
use proto::error_code::ErrorCode;
use proto::fact::Fact;
use proto::ids::{InstanceId, ThreadRef};
use proto::observation::Observation;
use proto::record::Record;
use proto::subject::Leaf;
use proto::time::Timestamp;
use testkit::memory::faults::{Fault, Faults, Firing, Landing, Op, OpKind};

use crate::fault_kind::FaultKind as Kind;
use crate::shared::{Note, Shared, State, Violation};
use crate::story;

/// The name of the world's own hand on the bus; nothing happens to it.
pub const CLIENT: &str = "client";

/// The faults of a world.
pub struct Chaos {
    /// The world.
    pub shared: Arc<Shared>,
}

/// Kinds that can happen at an operation; crashes can happen at any.
fn kinds_at(kind: OpKind) -> &'static [Kind] {
    match kind {
        OpKind::Append => &[
            Kind::LostAnswerLanded,
            Kind::LostAnswer,
            Kind::LandsLate,
            Kind::RefusedWithoutNumber,
            Kind::Stalled,
            Kind::Slow,
            Kind::Unavailable,
        ],
        OpKind::Schedule => &[
            Kind::LostAnswerLanded,
            Kind::LostAnswer,
            Kind::RefusedWithoutNumber,
            Kind::Slow,
            Kind::Unavailable,
        ],
        OpKind::Read => &[Kind::StaleRead, Kind::StaleRead, Kind::Slow, Kind::Unavailable],
        OpKind::Pull => &[Kind::DeliveredTwice, Kind::Reordered, Kind::Slow, Kind::Unavailable],
        OpKind::Ack | OpKind::Nak | OpKind::Progress => &[Kind::AckLost, Kind::Slow],
        OpKind::Publish => &[Kind::LiveLost, Kind::LiveLost, Kind::Slow],
        OpKind::Ask => &[Kind::LiveLost, Kind::Unavailable, Kind::Slow],
        OpKind::Last
        | OpKind::Scheduled
        | OpKind::Upkeep
        | OpKind::Listen
        | OpKind::Artifact
        | OpKind::Offer
        | OpKind::Freeze
        | OpKind::Recall
        | OpKind::Remember => &[Kind::Unavailable, Kind::Slow],
    }
}

/// How much more often faults strike where a start or a bar is written.
const STARTS: f64 = 8.0;

/// Operations of a world at one moment that no sound process comes near.
const RUSH: u32 = 20_000;

fn span(random: &mut fastrand::Rng, most_ms: u64) -> Duration {
    Duration::from_millis(random.u64(1..=most_ms))
}

impl State {
    /// What happens to an operation, and which kind of fault that is.
    fn draw(&mut self, op: &Op<'_>) -> Option<(Kind, Fault)> {
        if !self.chaos || self.left == 0 || self.random.f64() >= self.rate_at(op) {
            return None;
        }
        let kind = match self.random.u32(0..5) {
            0 => Kind::CrashBefore,
            1 => Kind::CrashAfter,
            _ => *self.random.choice(kinds_at(op.kind))?,
        };
        // What only working memory still knows is not lost there as well: schedules that never fire,
        // and the newest records of a journal that loses them.
        let only_there = [Kind::TickNever, Kind::TailLost];
        let both = matches!(op.kind, OpKind::Remember | OpKind::Recall)
            && only_there.iter().any(|kind| self.kinds.contains(kind));
        if !self.kinds.contains(&kind) || (both && kind == Kind::Unavailable) {
            return None;
        }
        self.left -= 1;
        Some((kind, self.fault(kind)))
    }

    /// Where two must not both begin, more goes wrong.
    fn rate_at(&self, op: &Op<'_>) -> f64 {
        match op.leaf {
            Some(Leaf::Start(_)) => (self.rate * STARTS).min(0.5),
            _ => self.rate,
        }
    }

    fn fault(&mut self, kind: Kind) -> Fault {
        let random = &mut self.random;
        match kind {
            Kind::CrashBefore => Fault::CrashBefore,
            Kind::CrashAfter => Fault::CrashAfter,
            Kind::Unavailable => Fault::Unavailable,
            Kind::Stalled => Fault::Delay(Duration::from_secs(6) + span(random, 14_000)),
            Kind::Slow if random.bool() => Fault::Delay(span(random, 3_000)),
            Kind::Slow => Fault::DelayAnswer(span(random, 8_000)),
            Kind::LostAnswerLanded => Fault::LoseAnswer(Landing::Now),
            Kind::LostAnswer => Fault::LoseAnswer(Landing::Never),
            Kind::LandsLate => Fault::LoseAnswer(Landing::After(span(random, 4_000))),
            Kind::RefusedWithoutNumber => Fault::RefuseWithoutNumber,
            Kind::StaleRead => Fault::Stale(random.usize(1..=4)),
            Kind::LiveLost | Kind::AckLost => Fault::Lose,
            Kind::DeliveredTwice => Fault::DeliverTwice,
            Kind::Reordered => Fault::NewestFirst,
            Kind::Killed
            | Kind::Drained
            | Kind::Paused
            | Kind::CutOff
            | Kind::AcksForgotten
            | Kind::Replayed
            | Kind::DuplicateInput
            | Kind::TickEarly
            | Kind::TickTwice
            | Kind::TickNever
            | Kind::MemoryForgot
            | Kind::MemoryLost
            | Kind::TailLost
            | Kind::ClockOff
            | Kind::ModelFails
            | Kind::ModelBreaks
            | Kind::Poison
            | Kind::TooNew => Fault::None,
        }
    }

    fn draw_firing(&mut self) -> Option<(Kind, Firing)> {
        if !self.chaos || self.random.u32(0..12) > 0 {
            return None;
        }
        let (kind, firing) = match self.random.u32(0..3) {
            0 => (Kind::TickEarly, Firing::Early(span(&mut self.random, 20_000))),
            1 => (Kind::TickTwice, Firing::Twice(span(&mut self.random, 5_000))),
            _ => (Kind::TickNever, Firing::Never),
        };
        self.kinds.contains(&kind).then_some((kind, firing))
    }
}

impl Chaos {
    fn judge(&self, stored: &Stored) {
        self.shared.tell(|| format!("STORED {}", story::of(stored)));
        let judged = {
            let mut guard = self.shared.state();
            let state = &mut *guard;
            state.judge.stored(stored, &state.ledger)
        };
        self.shared.violated(judged.found);
        match judged.record {
            Some(Record::Fact(Fact::ApprovalAsked(asked))) => {
                self.shared.note(Note::Asked(stored.subject.thread.clone(), asked));
            }
            Some(Record::Observation(seen)) => self.judge_doubt(&stored.subject.thread, &seen),
            _ => {}
        }
    }

    /// A process that goes round in circles lets no time pass: it is stopped, and that is a finding.
    fn goes_in_circles(&self, process: &InstanceId) -> bool {
        let Some(bus) = self.shared.bus() else { return false };
        let now = bus.elapsed();
        let rushes = {
            let rush = &mut self.shared.state().rush;
            *rush = if rush.0 == now { (now, rush.1 + 1) } else { (now, 0) };
            rush.1 > RUSH
        };
        if rushes {
            let why = format!("{process} goes on without letting time pass");
            self.shared.violated([Violation::new("time_passes", why)]);
        }
        rushes
    }

    /// Nobody is told of a doubt while the result is at hand.
    fn judge_doubt(&self, thread: &ThreadRef, seen: &Observation) {
        if seen.code != Some(ErrorCode::InDoubt) || seen.stamp.is_none() {
            return;
        }
        let (out_of_reach, counts) = {
            let state = self.shared.state();
            let missed = [Kind::Unavailable, Kind::CutOff];
            let out_of_reach = missed.iter().any(|kind| state.counts.contains_key(kind));
            (out_of_reach, state.judge.is_first_answer(seen))
        };
        let Some(bus) = self.shared.bus() else { return };
        let kept = bus.working_memory().kept_result(thread, &seen.tool_call_id);
        let kept: Option<Observation> = kept.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        if kept.is_some_and(|kept| kept.code != seen.code) && counts && !out_of_reach {
            let why = format!("{} is in doubt, its result is kept", seen.tool_call_id);
            self.shared.violated([Violation::new("results_are_not_lost", why)]);
        }
    }

    /// An active run has an unacked delivery or an armed schedule.
    fn judge_wakefulness(&self, thread: &ThreadRef) {
        {
            let state = self.shared.state();
            // A schedule may be lost with the tail; the list of active threads is swept for that.
            let lost = state.counts.contains_key(&Kind::TailLost);
            if lost || !state.judge.is_active(thread) {
                return;
            }
        }
        let Some(bus) = self.shared.bus() else { return };
        if !bus.has_unacked(thread) && bus.armed(thread).is_none() {
            let why = format!("{thread} is active, holds no delivery and has no schedule");
            self.shared.violated([Violation::new("never_asleep", why)]);
        }
    }
}

impl Faults for Chaos {
    fn on(&self, process: &InstanceId, op: &Op<'_>) -> Fault {
        if process.as_str() == CLIENT {
            return Fault::None;
        }
        if self.goes_in_circles(process) {
            return Fault::CrashBefore;
        }
        let drawn = self.shared.state().draw(op);
        let Some((kind, fault)) = drawn else { return Fault::None };
        self.shared.count(kind, format_args!("{process} at {:?} {:?}", op.kind, op.leaf));
        if let (Kind::Stalled, Fault::Delay(span), Some(bus)) = (kind, &fault, self.shared.bus()) {
            bus.pause(process, *span);
        }
        fault
    }

    fn firing(&self, thread: &ThreadRef, at: Timestamp) -> Firing {
        let drawn = self.shared.state().draw_firing();
        let Some((kind, firing)) = drawn else { return Firing::OnTime };
        self.shared.count(kind, format_args!("{thread} at {at}"));
        firing
    }

    fn crashed(&self, process: &InstanceId) {
        self.shared.note(Note::Crashed(process.clone()));
    }

    fn stored(&self, stored: &Stored) {
        self.judge(stored);
    }

    fn acked(&self, process: &InstanceId, queue: &Queue, stored: &Stored) {
        self.shared.tell(|| format!("ACKED {process} {}", story::of(stored)));
        if !matches!(queue, Queue::Tool(..)) {
            self.judge_wakefulness(&stored.subject.thread);
        }
    }
}

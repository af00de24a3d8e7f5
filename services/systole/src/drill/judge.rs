//! What was left of the promises: counted in the journals and in the tool's own file.

use std::collections::{BTreeMap, BTreeSet};

use invariants::{check_at_rest, check_left};
use ports::BusError;
use ports::journal::Journal;
use proto::envelope::Envelope;
use proto::error_code::ErrorCode;
use proto::fact::Fact;
use proto::grounds::Grounds;
use proto::ids::{Sequence, ThreadRef, ToolCallId};
use proto::input::InputBody;
use proto::observation::Observation;
use proto::record::{Placed, Record};
use serde::Serialize;

/// Counts of one cell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Counts {
    /// Threads whose run never ended.
    pub(crate) runs_lost: usize,
    /// Model requests beyond one per turn.
    pub(crate) model_calls_repeated: usize,
    /// Lines that the irreversible tool wrote.
    pub(crate) effects: usize,
    /// Lines that it wrote twice.
    pub(crate) effects_repeated: usize,
    /// Threads whose lost tail was restored.
    pub(crate) restored: usize,
    /// Calls that were answered as in doubt.
    pub(crate) in_doubt: usize,
    /// Bookings that were reported done and are not in the tool's file.
    pub(crate) claimed_in_vain: usize,
    /// Calls that a planner closed: their deadline had passed, or they were cancelled.
    pub(crate) closed: usize,
    /// Orders that were neither booked nor in doubt, by what their threads were told.
    pub(crate) unbooked: BTreeMap<String, usize>,
    /// Broken invariants, one a line.
    pub(crate) violations: Vec<String>,
}

impl Counts {
    /// Whether nothing that was promised is broken.
    pub(crate) fn keeps_promises(&self) -> bool {
        self.runs_lost == 0
            && self.effects_repeated == 0
            && self.claimed_in_vain == 0
            && self.violations.is_empty()
    }
}

/// What the bus kept of the journals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kept {
    /// All of them.
    #[default]
    Whole,
    /// It came back with an earlier copy.
    WithoutTail,
}

/// Judges threads and the tool's file.
pub(crate) async fn judge(
    journal: &dyn Journal,
    threads: &[ThreadRef],
    effects: &[String],
    kept: Kept,
) -> Result<Counts, BusError> {
    let distinct: BTreeSet<&String> = effects.iter().collect();
    let mut counts = Counts::of(effects);
    for place in threads {
        let history = history(journal, place).await?;
        counts.add((place, &history), &distinct, kept);
    }
    Ok(counts)
}

/// The records of a thread that can be read.
pub(crate) async fn history(
    journal: &dyn Journal,
    place: &ThreadRef,
) -> Result<Vec<Placed>, BusError> {
    let records = journal.read(place, Sequence::NONE, Sequence::NONE).await?;
    let placed = records.into_iter().filter_map(|stored| {
        let envelope = Envelope::decode(&stored.payload).ok()?;
        let (sequence, at) = (stored.sequence, stored.at);
        Some(Placed { sequence, at, nonce: envelope.nonce, record: envelope.body })
    });
    Ok(placed.collect())
}

impl Counts {
    /// What the tool's own file tells.
    pub(super) fn of(effects: &[String]) -> Self {
        let distinct: BTreeSet<&String> = effects.iter().collect();
        Self {
            effects: effects.len(),
            effects_repeated: effects.len().saturating_sub(distinct.len()),
            ..Self::default()
        }
    }

    /// Adds what the journal of a thread tells.
    pub(super) fn add(
        &mut self,
        (place, history): (&ThreadRef, &[Placed]),
        effects: &BTreeSet<&String>,
        kept: Kept,
    ) {
        let mut told = Told::default();
        for placed in history {
            told.read(placed.sequence, &placed.record);
        }
        let in_vain = told.booked.iter().filter(|name| !effects.contains(name)).count();
        self.claimed_in_vain = self.claimed_in_vain.saturating_add(in_vain);
        self.restored = self.restored.saturating_add(told.restored);
        self.closed = self.closed.saturating_add(told.closed);
        self.in_doubt = self.in_doubt.saturating_add(told.doubted.len());
        self.runs_lost = self.runs_lost.saturating_add(usize::from(!told.ended));
        let repeated = told.starts.saturating_sub(told.turns.len());
        self.model_calls_repeated = self.model_calls_repeated.saturating_add(repeated);
        if told.doubted.is_empty() && !told.orders.iter().all(|name| effects.contains(name)) {
            let count = self.unbooked.entry(told.codes.join(", ")).or_default();
            *count = count.saturating_add(1);
        }
        let thread = place.thread;
        let violations = match kept {
            Kept::Whole => check_at_rest(history),
            Kept::WithoutTail => check_left(history, true),
        };
        self.violations.extend(violations.iter().map(|violation| format!("{thread}: {violation}")));
    }
}

/// What the journal of one thread tells.
#[derive(Debug, Default)]
struct Told {
    grounds: Grounds,
    starts: usize,
    turns: BTreeSet<(u32, u32)>,
    ended: bool,
    restored: usize,
    closed: usize,
    doubted: BTreeSet<ToolCallId>,
    /// What was ordered, and what a tool said that it booked.
    orders: BTreeSet<String>,
    booked: Vec<String>,
    /// Codes of calls that did not go well, in order.
    codes: Vec<String>,
}

impl Told {
    fn read(&mut self, at: Sequence, record: &Record) {
        let is_void = matches!(record, Record::Fact(fact) if self.grounds.is_void(fact, at));
        self.grounds.note(at, matches!(record, Record::Fact(_) | Record::ToolCall(_)));
        match record {
            Record::Fact(_) if is_void => {}
            Record::Fact(fact) => self.fact(fact),
            Record::Observation(observation) => self.observation(observation),
            Record::Input(input) => self.input(&input.body),
            Record::ToolCall(_) | Record::Start(_) | Record::Tick => {}
        }
    }

    fn fact(&mut self, fact: &Fact) {
        match fact {
            Fact::TurnStarted(turn) => {
                self.starts = self.starts.saturating_add(1);
                self.turns.insert((turn.run, turn.turn));
            }
            Fact::RunFinished(_) => self.ended = true,
            Fact::Restored(restored) => {
                self.ended |= restored.finished.is_some();
                self.restored = self.restored.saturating_add(1);
                let doubts = restored.doubts.iter().map(|doubt| doubt.tool_call_id.clone());
                self.doubted.extend(doubts);
            }
            Fact::CallClosed { observation } => {
                self.closed = self.closed.saturating_add(1);
                self.observation(observation);
            }
            Fact::TurnCompleted(_)
            | Fact::TurnSealed(_)
            | Fact::ApprovalAsked(_)
            | Fact::Parked { .. }
            | Fact::Checkpoint(_) => {}
        }
    }

    fn observation(&mut self, observation: &Observation) {
        self.codes.extend(observation.code.map(|code| code.to_string()));
        if observation.code == Some(ErrorCode::InDoubt) {
            self.doubted.insert(observation.tool_call_id.clone());
        }
        let booked = observation.content.trim().strip_prefix("booked ");
        self.booked.extend(booked.map(|name| name.trim().to_owned()));
    }

    fn input(&mut self, body: &InputBody) {
        if let InputBody::Message(message) = body {
            let words = message.text.split_once(' ');
            let is_order = |word: &str| ["order", "hold", "sign", "pin"].contains(&word);
            let name = words.filter(|(word, _)| is_order(word)).map(|(_, name)| name.to_owned());
            self.orders.extend(name);
        }
    }
}

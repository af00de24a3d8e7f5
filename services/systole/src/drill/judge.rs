//! What was left of the promises: counted in the journals and in the tool's own file.

use std::collections::BTreeSet;

use invariants::check_at_rest;
use ports::BusError;
use ports::journal::Journal;
use proto::envelope::Envelope;
use proto::error_code::ErrorCode;
use proto::fact::Fact;
use proto::ids::{Sequence, ThreadRef};
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

/// Judges threads and the tool's file.
pub(crate) async fn judge(
    journal: &dyn Journal,
    threads: &[ThreadRef],
    effects: &[String],
) -> Result<Counts, BusError> {
    let distinct: BTreeSet<&String> = effects.iter().collect();
    let mut counts = Counts {
        effects: effects.len(),
        effects_repeated: effects.len().saturating_sub(distinct.len()),
        ..Counts::default()
    };
    for place in threads {
        let history = history(journal, place).await?;
        counts.add(place, &history, &distinct);
    }
    Ok(counts)
}

async fn history(journal: &dyn Journal, place: &ThreadRef) -> Result<Vec<Placed>, BusError> {
    let records = journal.read(place, Sequence::NONE, Sequence::NONE).await?;
    let placed = records.into_iter().filter_map(|stored| {
        let envelope = Envelope::decode(&stored.payload).ok()?;
        let (sequence, at) = (stored.sequence, stored.at);
        Some(Placed { sequence, at, nonce: envelope.nonce, record: envelope.body })
    });
    Ok(placed.collect())
}

impl Counts {
    fn add(&mut self, place: &ThreadRef, history: &[Placed], effects: &BTreeSet<&String>) {
        let mut starts = 0_usize;
        let mut turns = BTreeSet::new();
        let mut ended = false;
        let mut doubted = BTreeSet::new();
        for placed in history {
            match &placed.record {
                Record::Fact(Fact::TurnStarted(turn)) => {
                    starts = starts.saturating_add(1);
                    turns.insert((turn.run, turn.turn));
                }
                Record::Fact(Fact::RunFinished(_)) => ended = true,
                Record::Fact(Fact::Restored(restored)) => {
                    ended |= restored.finished.is_some();
                    self.restored = self.restored.saturating_add(1);
                    let doubts = restored.doubts.iter().map(|doubt| doubt.tool_call_id.clone());
                    doubted.extend(doubts);
                }
                Record::Fact(Fact::CallClosed { observation })
                | Record::Observation(observation) => {
                    if observation.code == Some(ErrorCode::InDoubt) {
                        doubted.insert(observation.tool_call_id.clone());
                    }
                    let booked = observation.content.trim().strip_prefix("booked ");
                    let is_there = |name: &str| effects.contains(&name.trim().to_owned());
                    if booked.is_some_and(|name| !is_there(name)) {
                        self.claimed_in_vain = self.claimed_in_vain.saturating_add(1);
                    }
                }
                Record::Fact(_)
                | Record::Input(_)
                | Record::ToolCall(_)
                | Record::Start(_)
                | Record::Tick => {}
            }
        }
        self.in_doubt = self.in_doubt.saturating_add(doubted.len());
        self.runs_lost = self.runs_lost.saturating_add(usize::from(!ended));
        let repeated = starts.saturating_sub(turns.len());
        self.model_calls_repeated = self.model_calls_repeated.saturating_add(repeated);
        let thread = place.thread;
        let violations = check_at_rest(history).into_iter();
        self.violations.extend(violations.map(|violation| format!("{thread}: {violation}")));
    }
}

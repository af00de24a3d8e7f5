//! What many worlds come to.

use std::collections::BTreeMap;

use crate::fault_kind::FaultKind;
use crate::world::WorldReport;

/// Sums over worlds.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Worlds.
    pub worlds: u64,
    /// Faults by kind.
    pub faults: BTreeMap<FaultKind, u64>,
    /// Runs that ended, inputs, calls dispatched.
    pub counts: [u64; 3],
    /// Effects that began.
    pub effects: u64,
    /// The fewest faults of a world.
    pub fewest: Option<u64>,
    /// Virtual seconds.
    pub seconds: u64,
}

impl Totals {
    /// Adds a world.
    pub fn add(&mut self, world: &WorldReport) {
        self.worlds += 1;
        for (kind, count) in &world.faults {
            *self.faults.entry(*kind).or_default() += count;
        }
        for (sum, count) in self.counts.iter_mut().zip(world.totals) {
            *sum += count;
        }
        self.effects += world.effects;
        let faults = world.faults.values().sum();
        self.fewest = Some(self.fewest.map_or(faults, |fewest| fewest.min(faults)));
        self.seconds += world.lasted.as_secs();
    }

    /// Adds the sums of another share.
    pub fn merge(&mut self, other: &Self) {
        self.worlds += other.worlds;
        for (kind, count) in &other.faults {
            *self.faults.entry(*kind).or_default() += count;
        }
        for (sum, count) in self.counts.iter_mut().zip(other.counts) {
            *sum += count;
        }
        self.effects += other.effects;
        self.fewest = match (self.fewest, other.fewest) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (one, None) | (None, one) => one,
        };
        self.seconds += other.seconds;
    }

    /// Kinds that never happened.
    pub fn missing(&self) -> Vec<FaultKind> {
        let happened = |kind: &&FaultKind| self.faults.contains_key(kind);
        FaultKind::ALL.iter().filter(|kind| !happened(kind)).copied().collect()
    }

    /// The report, line by line.
    pub fn lines(&self) -> Vec<String> {
        let [runs, inputs, calls] = self.counts;
        let mut lines = vec![format!(
            "{} worlds, {} virtual hours: {runs} runs, {inputs} inputs, {calls} calls, {} effects",
            self.worlds,
            self.seconds / 3600,
            self.effects
        )];
        lines.push(format!("faults (at least {} in a world):", self.fewest.unwrap_or(0)));
        for kind in FaultKind::ALL {
            let count = self.faults.get(kind).copied().unwrap_or(0);
            lines.push(format!("  {:<24} {count}", kind.name()));
        }
        lines
    }
}

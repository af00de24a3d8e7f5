//! Everything that was measured.

use serde::Serialize;

use super::cold::Cold;
use super::early::Early;
use super::floor::Floor;
use super::memory::Memory;
use super::overhead::Overhead;
use super::statistics::ratio;
use super::throughput::Throughput;

/// The bench, or the parts of it that were asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Report {
    /// Whether it was the short form, whose numbers are only rough.
    pub(crate) quick: bool,
    pub(crate) cores: usize,
    /// The load average before the first measurement.
    pub(crate) load_before: f64,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(crate) rates: Option<Rates>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) overhead: Option<Overhead>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cold_start: Option<Cold>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) memory: Option<Memory>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) early_dispatch: Vec<Early>,
}

/// Tool calls a second, and what they are compared with.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Rates {
    pub(crate) syncs_per_second: f64,
    /// Journal `FULL`: what was answered survives a power cut.
    pub(crate) full: Throughput,
    /// Journal `NORMAL`: it survives the end of the process.
    pub(crate) normal: Throughput,
    pub(crate) floor: Floor,
    pub(crate) full_to_floor: f64,
    pub(crate) normal_to_floor: f64,
}

impl Rates {
    /// The same with what follows from it.
    #[must_use]
    pub(crate) fn with_ratios(mut self) -> Self {
        let floor = self.floor.calls_per_second;
        self.full_to_floor = ratio(self.full.calls_per_second, floor);
        self.normal_to_floor = ratio(self.normal.calls_per_second, floor);
        self
    }
}

impl Report {
    /// Whether other work was likely to disturb the numbers.
    pub(crate) fn is_disturbed(&self) -> bool {
        self.load_before > super::statistics::number(self.cores) * 0.75
    }
}

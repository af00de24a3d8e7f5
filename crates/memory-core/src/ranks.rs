//! The rank of a value among those of its session, without looking back: a histogram of 64 bins, mixed
//! with a prior for the first turns.
//!
//! A rank reads as "more than so much of this session", whatever the language, the tools or the
//! embedder. Two ranks that do not depend on each other are uniform, and then
//! `P(0.6 a + 0.4 b > 0.7) = 0.1875`: a threshold of 0.7 means "about the top fifth".

use serde::{Deserialize, Serialize};

/// Bins of a histogram.
pub const BINS: usize = 64;
/// Turns that the prior is worth.
const PRIOR_TURNS: f64 = 32.0;
/// What a turn counts when it is new.
const ONE: u32 = 1024;
/// Turns after which what was counted counts half.
const FADES: u32 = 128;

/// How many values of a session fell into each bin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ranks {
    bins: Vec<u32>,
    count: u32,
}

impl Ranks {
    /// Before anything was seen: `prior` is what to expect, and counts as so many turns. It fades with
    /// the first ones.
    pub fn new(prior: &[f64; BINS]) -> Self {
        let all = prior.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        let turns = |part: &f64| part / all * PRIOR_TURNS * f64::from(ONE);
        let bins: Vec<u32> = prior.iter().map(|part| whole(turns(part))).collect();
        Self { count: bins.iter().sum(), bins }
    }

    /// The share of what was seen that lies below `value`, which is within 0 and 1; values of the same
    /// bin count half.
    pub fn rank(&self, value: f64) -> f64 {
        let bin = bin(value);
        let below: u32 = self.bins.iter().take(bin).sum();
        let same = self.bins.get(bin).copied().unwrap_or(0);
        let under = f64::from(below) + 0.5 * f64::from(same);
        (under / f64::from(self.count.max(1))).clamp(0.0, 1.0)
    }

    /// Counts a value. What is older than the newest few hundred turns fades: words get less new all
    /// the time, and a late turn is to be held against its like.
    pub fn add(&mut self, value: f64) {
        if self.count >= FADES.saturating_mul(ONE) {
            self.bins.iter_mut().for_each(|count| *count /= 2);
            self.count = self.bins.iter().sum();
        }
        if let Some(count) = self.bins.get_mut(bin(value)) {
            *count = count.saturating_add(ONE);
            self.count = self.count.saturating_add(ONE);
        }
    }
}

/// A prior that rises from `low` to `peak` and falls to `high`, all within 0 and 1.
pub fn peaked(low: f64, peak: f64, high: f64) -> [f64; BINS] {
    let mut prior = [0.0; BINS];
    for (bin, share) in prior.iter_mut().enumerate() {
        let middle = at(bin) + 0.5 / 64.0;
        let rising = (middle - low) / (peak - low);
        let falling = (high - middle) / (high - peak);
        *share = rising.min(falling).clamp(0.0, 1.0) + 0.02;
    }
    prior
}

/// A whole number from one that is not; there is no checked conversion, and the text form is exact.
fn whole(value: f64) -> u32 {
    format!("{:.0}", value.max(0.0)).parse().unwrap_or(0)
}

/// The bin of a value within 0 and 1.
fn bin(value: f64) -> usize {
    (1..BINS).take_while(|edge| value >= at(*edge)).count()
}

fn at(edge: usize) -> f64 {
    f64::from(u32::try_from(edge).unwrap_or(u32::MAX)) / 64.0
}

/// A value without an upper end, brought between 0 and 1: `typical` becomes one half.
pub fn squashed(value: f64, typical: f64) -> f64 {
    let value = value.max(0.0);
    value / (value + typical.max(f64::MIN_POSITIVE))
}

//! What a provider counts for what was estimated: a running ratio for each model of a thread, folded
//! from its journal, so that whoever folds it builds the same request.

use std::collections::BTreeMap;

use proto::fact::{Counted, Estimator};

/// Models whose ratios are kept; more than an agent can name.
const MOST: usize = 16;
/// How much of what was known stays when a new count comes: three parts of four.
const STAYS: (u64, u64) = (3, 4);
/// A provider that counts more than so many times as much, or as little, counts something else.
const WIDEST: u64 = 4;

/// Sums over the newest requests, the older the lighter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    /// What was estimated.
    pub estimated: u64,
    /// What the provider counted.
    pub counted: u64,
}

impl Default for Ratio {
    fn default() -> Self {
        Self { estimated: 1, counted: 1 }
    }
}

impl Ratio {
    /// An estimate as the provider would count it, rounded up.
    pub fn corrected(self, tokens: usize) -> usize {
        scaled(tokens, self.counted, self.estimated, u128::div_ceil)
    }

    /// The largest estimate that the provider counts as no more than this.
    pub fn uncorrected(self, tokens: usize) -> usize {
        scaled(tokens, self.estimated, self.counted, |all, part| all / part)
    }

    /// The same in steps of an eighth, rounded up. What is left out of a request hangs on it, and a
    /// request that begins like the one before is cheaper.
    #[must_use]
    pub fn steady(self) -> Self {
        let eighths = scaled(8, self.counted, self.estimated, u128::div_ceil);
        Self { estimated: 8, counted: u64::try_from(eighths).unwrap_or(u64::MAX).max(1) }
    }

    /// In hundredths, for people.
    pub fn percent(self) -> usize {
        self.corrected(100)
    }

    fn within_reason(self) -> Self {
        let (low, high) = (self.estimated / WIDEST, self.estimated.saturating_mul(WIDEST));
        Self { counted: self.counted.clamp(low.max(1), high.max(1)), ..self }
    }
}

fn scaled(tokens: usize, by: u64, of: u64, divide: impl Fn(u128, u128) -> u128) -> usize {
    let wide = u128::try_from(tokens).unwrap_or(u128::MAX);
    let all = wide.saturating_mul(u128::from(by));
    usize::try_from(divide(all, u128::from(of.max(1)))).unwrap_or(usize::MAX)
}

/// The ratios of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ratios(pub BTreeMap<(String, Estimator), Ratio>);

impl Ratios {
    /// What is known of a model; one to one when nothing is.
    pub fn of(&self, model: &str, by: Estimator) -> Ratio {
        let known = self.0.get(&(model.to_owned(), by)).copied();
        known.unwrap_or_default().within_reason()
    }

    /// A request was counted.
    pub(crate) fn learn(&mut self, told: &Counted) {
        if told.estimated == 0 || told.counted == 0 {
            return;
        }
        let key = (told.model.clone(), told.by);
        if self.0.len() >= MOST && !self.0.contains_key(&key) {
            return;
        }
        let (kept, of) = STAYS;
        let older = |sum: u64| sum.saturating_mul(kept) / of;
        let known = self.0.get(&key).copied().unwrap_or(Ratio { estimated: 0, counted: 0 });
        let ratio = Ratio {
            estimated: older(known.estimated).saturating_add(told.estimated),
            counted: older(known.counted).saturating_add(told.counted),
        };
        self.0.insert(key, ratio);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(estimated: u64, counted: u64) -> Counted {
        Counted { model: "m".to_owned(), by: Estimator::Characters, estimated, counted }
    }

    #[test]
    fn what_is_counted_corrects_what_is_estimated_and_newer_counts_weigh_more() {
        let mut ratios = Ratios::default();
        let of = |ratios: &Ratios| ratios.of("m", Estimator::Characters);
        assert_eq!(of(&ratios).corrected(70), 70);
        ratios.learn(&counted(100, 120));
        assert_eq!((of(&ratios).corrected(100), of(&ratios).uncorrected(120)), (120, 100));
        assert_eq!(of(&ratios).corrected(1), 2);
        assert_eq!(of(&ratios).steady(), Ratio { estimated: 8, counted: 10 });
        ratios.learn(&counted(100, 90));
        assert_eq!(of(&ratios), Ratio { estimated: 175, counted: 180 });
        for _ in 0..20 {
            ratios.learn(&counted(100, 90));
        }
        assert_eq!(of(&ratios).percent(), 90);
        assert_eq!(ratios.of("m", Estimator::Encoding), Ratio::default());
        assert_eq!(ratios.of("other", Estimator::Characters), Ratio::default());
    }

    #[test]
    fn a_count_that_cannot_be_one_changes_little() {
        let mut ratios = Ratios::default();
        ratios.learn(&counted(100, 0));
        ratios.learn(&counted(0, 100));
        assert_eq!(ratios, Ratios::default());
        ratios.learn(&counted(100, u64::MAX));
        assert_eq!(ratios.of("m", Estimator::Characters).corrected(100), 400);
        ratios = Ratios::default();
        ratios.learn(&counted(1000, 1));
        assert_eq!(ratios.of("m", Estimator::Characters).corrected(100), 25);
    }

    #[test]
    fn a_thread_keeps_few_ratios() {
        let mut ratios = Ratios::default();
        for model in 0..100 {
            ratios.learn(&Counted { model: format!("m{model}"), ..counted(1, 1) });
        }
        assert_eq!(ratios.0.len(), MOST);
    }
}

//! Numbers from samples.

use std::time::Duration;

/// The value below which `share` (0 to 1) of the samples lie, by nearest rank; zero without samples.
pub(crate) fn quantile(samples: &[f64], share: f64) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = number(sorted.len());
    let wanted = share * count;
    // The first whose rank reaches the share.
    let ranked = (1_u32..).zip(&sorted);
    let found = ranked.clone().find(|(rank, _)| f64::from(*rank) >= wanted);
    found.map_or(0.0, |(_, value)| *value)
}

/// The middle one.
pub(crate) fn median(samples: &[f64]) -> f64 {
    quantile(samples, 0.5)
}

/// How many in a second; zero when no time passed.
pub(crate) fn rate(count: usize, took: Duration) -> f64 {
    ratio(number(count), took.as_secs_f64())
}

/// One over the other; zero when there is no other.
pub(crate) fn ratio(one: f64, other: f64) -> f64 {
    if other > 0.0 { one / other } else { 0.0 }
}

/// A count as a number to compute with.
pub(crate) fn number(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::INFINITY, f64::from)
}

/// A length as the widest number.
pub(crate) fn wide(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// A span in milliseconds.
pub(crate) fn millis(span: Duration) -> f64 {
    span.as_secs_f64() * 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_samples_by_nearest_rank() {
        let samples = [5.0, 1.0, 4.0, 2.0, 3.0];
        let quantiles = [0.0, 0.5, 0.9, 1.0].map(|share| quantile(&samples, share).to_string());
        assert_eq!(quantiles, ["1", "3", "5", "5"]);
        assert_eq!(median(&[2.0, 1.0]).to_bits(), 1.0_f64.to_bits());
        assert_eq!(median(&[]).to_bits(), 0.0_f64.to_bits());
    }

    #[test]
    fn rates_need_time() {
        assert_eq!(rate(6, Duration::from_secs(2)).to_bits(), 3.0_f64.to_bits());
        assert_eq!(rate(6, Duration::ZERO).to_bits(), 0.0_f64.to_bits());
    }
}

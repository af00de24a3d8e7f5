//! Words as numbers, and BM25 over them. Every store counts words this way, so that the same question
//! has the same answer in all of them.

use std::collections::BTreeMap;

use crate::text;

/// Saturation of repeated words.
const K1: f32 = 1.2;
/// How much length counts.
const B: f32 = 0.75;
/// Words of a usual fragment. It is fixed, so that a weight never changes once it was written.
const USUAL_LENGTH: f32 = 12.0;

/// The words of a text with how often each comes, by word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    counts: Vec<(u32, u32)>,
    length: u32,
}

impl Words {
    /// Those of a text.
    pub fn of(text: &str) -> Self {
        let mut counts = BTreeMap::new();
        let mut length: u32 = 0;
        for term in text::terms(text) {
            let count: &mut u32 = counts.entry(hash(&term)).or_default();
            *count = count.saturating_add(1);
            length = length.saturating_add(1);
        }
        Self { counts: counts.into_iter().collect(), length }
    }

    /// Each word with its weight in BM25, without how rare it is.
    pub fn weights(&self) -> impl Iterator<Item = (u32, f32)> + '_ {
        let share = float(self.length) / USUAL_LENGTH;
        let norm = K1 * (1.0 - B + B * share);
        self.counts.iter().map(move |(word, count)| {
            let count = float(*count);
            (*word, count * (K1 + 1.0) / (count + norm))
        })
    }

    /// The words, each once, ascending.
    pub fn distinct(&self) -> impl Iterator<Item = u32> + '_ {
        self.counts.iter().map(|(word, _)| *word)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// How much two texts have in common, from 0 to 1: shared words of all words.
    pub fn likeness(&self, other: &Self) -> f64 {
        let theirs: Vec<u32> = other.distinct().collect();
        let shared = self.distinct().filter(|word| theirs.binary_search(word).is_ok()).count();
        let all = self.counts.len().saturating_add(theirs.len()).saturating_sub(shared);
        let number = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        if all == 0 { 0.0 } else { number(shared) / number(all) }
    }
}

/// How much a word counts that so many of so many texts have.
pub fn rarity(texts: u32, having: u32) -> f32 {
    let (texts, having) = (float(texts), float(having));
    ((texts - having + 0.5) / (having + 0.5)).ln_1p()
}

/// Counts of words and texts are far below 2^24, up to which each whole number is exact.
fn float(number: u32) -> f32 {
    let [_, high, middle, low] = number.min((1 << 24) - 1).to_be_bytes();
    (f32::from(high) * 256.0 + f32::from(middle)) * 256.0 + f32::from(low)
}

/// FNV-1a.
fn hash(word: &str) -> u32 {
    word.bytes()
        .fold(0x811c_9dc5, |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rare_word_counts_more_and_none_counts_against() {
        assert!(rarity(1000, 1) > rarity(1000, 10));
        assert!(rarity(1000, 1000) > 0.0);
        assert!((float(70_000) - 70_000.0).abs() < f32::EPSILON);
    }

    #[test]
    fn a_word_that_comes_often_and_a_short_text_count_more() {
        let best =
            |text: &str| Words::of(text).weights().map(|(_, weight)| weight).fold(0.0, f32::max);
        assert!(best("canary canary") > best("canary"));
        let many: Vec<String> = (0..50).map(|n| format!("w{n}")).collect();
        assert!(best(&format!("canary {}", many.join(" "))) < best("canary"));
    }

    #[test]
    fn likeness_is_the_shared_part() {
        let (a, b) = (Words::of("red green blue"), Words::of("green blue black"));
        assert!((a.likeness(&b) - 0.5).abs() < 1e-9);
        assert!((a.likeness(&a) - 1.0).abs() < 1e-9);
        assert!(Words::default().likeness(&Words::default()) < 1e-9);
    }
}

//! The list by words: BM25 over one tenant's words.

use std::collections::HashMap;

use memory_core::lexical::{Words, rarity};

/// Which texts have a word, with its weight in each.
#[derive(Debug, Default)]
pub(crate) struct WordIndex {
    postings: HashMap<u32, Vec<(u32, f32)>>,
    texts: u32,
    entries: usize,
}

impl WordIndex {
    pub(crate) fn add(&mut self, slot: u32, words: &Words) {
        self.texts = self.texts.saturating_add(1);
        for (word, weight) in words.weights() {
            self.postings.entry(word).or_default().push((slot, weight));
            self.entries = self.entries.saturating_add(1);
        }
    }

    pub(crate) fn remove(&mut self, slot: u32, words: &Words) {
        self.texts = self.texts.saturating_sub(1);
        for word in words.distinct() {
            let Some(list) = self.postings.get_mut(&word) else { continue };
            let before = list.len();
            list.retain(|(other, _)| *other != slot);
            self.entries = self.entries.saturating_sub(before.saturating_sub(list.len()));
            if list.is_empty() {
                self.postings.remove(&word);
            }
        }
    }

    /// Adds what each text scores for a question to `scores`, by slot.
    pub(crate) fn score(&self, question: &Words, scores: &mut [f32]) {
        for word in question.distinct() {
            let Some(list) = self.postings.get(&word) else { continue };
            let rarity = rarity(self.texts, u32::try_from(list.len()).unwrap_or(u32::MAX));
            for (slot, weight) in list {
                if let Some(score) = usize::try_from(*slot).ok().and_then(|at| scores.get_mut(at)) {
                    *score += rarity * weight;
                }
            }
        }
    }

    /// About how many bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.entries.saturating_mul(8).saturating_add(self.postings.len().saturating_mul(48))
    }
}

//! BM25 over a session: the search that needs no model.

use std::collections::BTreeMap;

use crate::text::each_term;

/// How soon a further mention of a word stops to count.
const K1: f64 = 1.2;
/// How much a text's length counts.
const B: f64 = 0.75;

/// An index of texts, numbered from 0.
#[derive(Clone, Debug, Default)]
pub struct Index {
    postings: BTreeMap<String, Vec<(usize, f64)>>,
    lengths: Vec<f64>,
}

impl Index {
    /// Adds the next text.
    pub fn add(&mut self, text: &str) {
        let number = self.lengths.len();
        let mut length = 0.0;
        let postings = &mut self.postings;
        each_term(text, |term| {
            length += 1.0;
            match postings.get_mut(term) {
                Some(places) => match places.last_mut() {
                    Some((last, count)) if *last == number => *count += 1.0,
                    Some(_) | None => places.push((number, 1.0)),
                },
                None => {
                    postings.insert(term.to_owned(), vec![(number, 1.0)]);
                }
            }
        });
        self.lengths.push(length);
    }

    /// The texts that share a word with the query, best first.
    pub fn search(&self, query: &str) -> Vec<(usize, f64)> {
        let all = f64::from(u32::try_from(self.lengths.len()).unwrap_or(u32::MAX));
        let mean = self.lengths.iter().sum::<f64>() / all.max(1.0);
        let mut scores: BTreeMap<usize, f64> = BTreeMap::new();
        each_term(query, |term| {
            let Some(places) = self.postings.get(term) else { return };
            let within = f64::from(u32::try_from(places.len()).unwrap_or(u32::MAX));
            let rarity = (1.0 + (all - within + 0.5) / (within + 0.5)).ln();
            for (number, count) in places {
                let length = self.lengths.get(*number).copied().unwrap_or(mean);
                let damped = count + K1 * (1.0 - B + B * length / mean.max(1.0));
                *scores.entry(*number).or_default() += rarity * count * (K1 + 1.0) / damped;
            }
        });
        let mut found: Vec<(usize, f64)> = scores.into_iter().collect();
        found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        found
    }
}

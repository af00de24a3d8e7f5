//! Found lists into one order.
//!
//! Each list (words, vectors) names fragments, best first. A fragment's base is its reciprocal rank
//! fused over the lists; a turn lends a part of it to its neighbours, because an answer often stands
//! beside the words that were asked for. Then factors: importance, kind, validity, age.
//!
//! ```text
//! base(f)  = sum over lists of 1 / (k + rank of f, from 1)                      k = 10
//! near(f)  = base(f) + 0.3 * (best base of the turn before + of the turn after)
//! score(f) = near(f) * (1 + 0.8 * importance) * kind * validity * decay(age)
//! ```
//!
//! A superseded fragment never stands above the one that took its place: the newer one inherits what
//! the older was found for.

use std::collections::BTreeMap;
use std::time::Duration;

use proto::ids::ThreadId;
use proto::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::fragment::FragmentId;
use crate::kind::Kind;

/// The `k` of reciprocal rank fusion. The textbook's 60 was measured to be worse than BM25 alone.
pub const RRF_K: f64 = 10.0;

/// The weights of the formula.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    /// The `k` of reciprocal rank fusion.
    pub rrf_k: f64,
    /// How much importance counts: the factor is 1 + prior * importance.
    pub prior: f64,
    /// The part of a neighbour's base that a fragment gets.
    pub neighbour: f64,
    /// Factors by kind; 1 where none is given.
    pub kinds: BTreeMap<Kind, f64>,
    /// The factor for what no longer holds, when that is asked for at all.
    pub invalid: f64,
    /// After which time a fragment counts half as much; never, by default: decay was measured to cost
    /// a point where facts are asked for.
    pub half_life: Option<Duration>,
    /// The least that decay leaves.
    pub decay_floor: f64,
    /// The share of relevance in maximal marginal relevance, 0 to 1; absent means off.
    pub mmr: Option<f64>,
}

impl Default for Weights {
    fn default() -> Self {
        Self {
            rrf_k: RRF_K,
            prior: 0.8,
            neighbour: 0.3,
            kinds: BTreeMap::new(),
            invalid: 0.5,
            half_life: None,
            decay_floor: 0.2,
            mmr: None,
        }
    }
}

/// What the formula has to know of a fragment.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    /// Its importance, 0 to 1.
    pub importance: f64,
    /// What it is.
    pub kind: Kind,
    /// When it was said.
    pub at: Timestamp,
    /// From when it no longer holds.
    pub invalid_from: Option<Timestamp>,
    /// The fragment that took its place.
    pub superseded_by: Option<FragmentId>,
}

/// How a search was meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// What holds at this time. What does not is left out.
    AsOf(Timestamp),
    /// Everything, seen at this time: what no longer holds stands below what took its place.
    All(Timestamp),
}

/// A found fragment and how its score came about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ranked {
    /// The fragment.
    pub id: FragmentId,
    /// Its place in each list, from 1.
    pub ranks: Vec<Option<u32>>,
    /// Fused.
    pub base: f64,
    /// What its neighbours lent it.
    pub neighbours: f64,
    /// The factor of its importance.
    pub prior: f64,
    /// The factor of its kind.
    pub kind: f64,
    /// The factor of its validity.
    pub validity: f64,
    /// The factor of its age.
    pub decay: f64,
    /// The score.
    pub score: f64,
}

/// Ranks what was found, best first; ties by id. `known` holds the found fragments and, where they
/// are at hand, those of the turns beside them: these may come in by their neighbours alone. A found
/// fragment that is not known is left out, for it may have been deleted meanwhile.
pub fn rank(
    lists: &[Vec<FragmentId>],
    known: &BTreeMap<FragmentId, Known>,
    weights: &Weights,
    reading: Reading,
) -> Vec<Ranked> {
    ranked_by(&Fused::new(lists, known, weights.rrf_k), known, weights, reading)
}

/// The same where a store has fused the lists itself: `bases` are what it found.
pub fn rank_fused(
    bases: &BTreeMap<FragmentId, f64>,
    known: &BTreeMap<FragmentId, Known>,
    weights: &Weights,
    reading: Reading,
) -> Vec<Ranked> {
    ranked_by(&Fused::of(bases), known, weights, reading)
}

fn ranked_by(
    fused: &Fused,
    known: &BTreeMap<FragmentId, Known>,
    weights: &Weights,
    reading: Reading,
) -> Vec<Ranked> {
    let seen = known.iter().filter(|(_, one)| is_read(one, reading));
    let ranked = seen.filter_map(|(id, one)| fused.ranked(id, one, weights, reading));
    let mut ranked: Vec<Ranked> = ranked.collect();
    put_updates_first(&mut ranked, known);
    ranked.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.id.cmp(&b.id)));
    ranked
}

fn is_read(one: &Known, reading: Reading) -> bool {
    match reading {
        Reading::All(_) => true,
        Reading::AsOf(at) => one.at <= at && one.invalid_from.is_none_or(|until| at < until),
    }
}

struct Fused {
    by_id: BTreeMap<FragmentId, (f64, Vec<Option<u32>>)>,
    by_turn: BTreeMap<(ThreadId, u64), f64>,
    lists: usize,
}

impl Fused {
    fn new(lists: &[Vec<FragmentId>], known: &BTreeMap<FragmentId, Known>, k: f64) -> Self {
        let mut fused =
            Self { by_id: BTreeMap::new(), by_turn: BTreeMap::new(), lists: lists.len() };
        for (number, list) in lists.iter().enumerate() {
            let found = list.iter().filter(|id| known.contains_key(id));
            for (rank, id) in (1_u32..).zip(found) {
                fused.add(number, rank, id, k);
            }
        }
        for (id, (base, _)) in &fused.by_id {
            let best = fused.by_turn.entry((id.thread, id.turn)).or_insert(0.0);
            *best = best.max(*base);
        }
        fused
    }

    fn of(bases: &BTreeMap<FragmentId, f64>) -> Self {
        let mut fused = Self { by_id: BTreeMap::new(), by_turn: BTreeMap::new(), lists: 0 };
        for (id, base) in bases {
            fused.by_id.insert(id.clone(), (*base, Vec::new()));
            let best = fused.by_turn.entry((id.thread, id.turn)).or_insert(0.0);
            *best = best.max(*base);
        }
        fused
    }

    fn add(&mut self, list: usize, rank: u32, id: &FragmentId, k: f64) {
        let none = || (0.0, vec![None; self.lists]);
        let (base, ranks) = self.by_id.entry(id.clone()).or_insert_with(none);
        if let Some(place @ None) = ranks.get_mut(list) {
            *place = Some(rank);
            *base += 1.0 / (k + f64::from(rank));
        }
    }

    fn lent(&self, id: &FragmentId) -> f64 {
        let of = |turn: Option<u64>| {
            turn.and_then(|turn| self.by_turn.get(&(id.thread, turn))).copied().unwrap_or(0.0)
        };
        of(id.turn.checked_sub(1)) + of(id.turn.checked_add(1))
    }

    fn ranked(
        &self,
        id: &FragmentId,
        one: &Known,
        weights: &Weights,
        reading: Reading,
    ) -> Option<Ranked> {
        let (base, ranks) = self.by_id.get(id).cloned().unwrap_or_else(|| (0.0, Vec::new()));
        let neighbours = weights.neighbour * self.lent(id);
        let prior = 1.0 + weights.prior * one.importance.clamp(0.0, 1.0);
        let kind = weights.kinds.get(&one.kind).copied().unwrap_or(1.0);
        let (Reading::AsOf(now) | Reading::All(now)) = reading;
        let ended = one.invalid_from.is_some_and(|until| until <= now);
        let validity = if ended { weights.invalid } else { 1.0 };
        let decay = decay(weights, now.since(one.at));
        let score = (base + neighbours) * prior * kind * validity * decay;
        let ranked =
            Ranked { id: id.clone(), ranks, base, neighbours, prior, kind, validity, decay, score };
        (score > 0.0).then_some(ranked)
    }
}

/// The factor of an age: half after each half-life, never below the floor.
pub fn decay(weights: &Weights, age: Duration) -> f64 {
    let Some(half_life) = weights.half_life.filter(|span| !span.is_zero()) else { return 1.0 };
    let halvings = age.as_secs_f64() / half_life.as_secs_f64();
    (-halvings).exp2().max(weights.decay_floor.clamp(0.0, 1.0))
}

/// What took another's place inherits what that was found for, and stands above it.
fn put_updates_first(ranked: &mut [Ranked], known: &BTreeMap<FragmentId, Known>) {
    let places: BTreeMap<FragmentId, usize> =
        ranked.iter().enumerate().map(|(at, one)| (one.id.clone(), at)).collect();
    let newer = |id: &FragmentId| known.get(id).and_then(|one| one.superseded_by.as_ref());
    let mut older: Vec<usize> = (0..ranked.len()).collect();
    // Oldest first, so that a chain of updates hands on from link to link.
    older.sort_by_key(|at| ranked.get(*at).and_then(|one| known.get(&one.id)).map(|one| one.at));
    for at in older {
        let Some((id, score)) = ranked.get(at).map(|one| (one.id.clone(), one.score)) else {
            continue;
        };
        let update = newer(&id).and_then(|update| places.get(update)).filter(|to| **to != at);
        let Some(update) = update.and_then(|to| ranked.get_mut(*to)) else { continue };
        let most = update.score.max(score);
        update.score = most;
        if let Some(old) = ranked.get_mut(at) {
            old.score = old.score.min(most * 0.999);
        }
    }
}

/// The best `most` of what was ranked, each as different as may be from those before it:
/// `share * score - (1 - share) * likeness`, scores scaled to the best one. Without `mmr` in the
/// weights these are simply the first.
pub fn diverse(
    ranked: Vec<Ranked>,
    most: usize,
    weights: &Weights,
    likeness: impl Fn(&FragmentId, &FragmentId) -> f64,
) -> Vec<Ranked> {
    let Some(share) = weights.mmr.map(|share| share.clamp(0.0, 1.0)) else {
        return ranked.into_iter().take(most).collect();
    };
    let best = ranked.first().map_or(1.0, |one| one.score.max(f64::MIN_POSITIVE));
    let mut left: Vec<(Ranked, f64)> = ranked.into_iter().map(|one| (one, 0.0)).collect();
    let mut chosen: Vec<Ranked> = Vec::new();
    while chosen.len() < most {
        let worth = |(one, like): &(Ranked, f64)| share * one.score / best - (1.0 - share) * like;
        let next = left.iter().enumerate().rev().max_by(|a, b| worth(a.1).total_cmp(&worth(b.1)));
        let Some((at, _)) = next else { break };
        let (taken, _) = left.remove(at);
        for (one, like) in &mut left {
            *like = like.max(likeness(&taken.id, &one.id));
        }
        chosen.push(taken);
    }
    chosen
}

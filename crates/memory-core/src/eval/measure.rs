//! The figures of an evaluation.

use std::collections::BTreeMap;

use proto::ids::{TenantId, ThreadId};
use proto::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::data::{Dialogue, Said};
use crate::bm25::Index;
use crate::entity::{Extract, Rules};
use crate::fragment::{FragmentId, Origin};
use crate::importance::{Explanation, Profile, Scoring, Session, Turn, Verdict, cosine};
use crate::kind::classify;
use crate::ranking::{Known, Reading, Weights, rank};
use crate::text::tokens;

/// Results that are looked at.
const DEPTH: usize = 10;
/// Results of each list that are fused.
const FOUND: usize = 200;
/// Shares of the history's tokens that are kept.
pub const SHARES: [u32; 3] = [20, 40, 60];

/// Vectors of a conversation, where there is an embedder.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Vectors {
    /// One per turn.
    pub turns: Vec<Vec<f32>>,
    /// One per question.
    pub questions: Vec<Vec<f32>>,
}

/// How a way of searching did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// Questions with one of their turns among the first five.
    pub any_at_5: f64,
    /// Questions with one of their turns among the first ten.
    pub any_at_10: f64,
    /// The mean share of a question's turns among the first ten.
    pub frac_at_10: f64,
    /// Discounted gain over the first ten, by the best possible.
    pub ndcg_at_10: f64,
}

/// What is left when a share of the tokens is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// The share that was allowed, in percent.
    pub share: u32,
    /// The mean share of a question's turns that was kept.
    pub evidence: f64,
    /// Questions whose turns were all kept.
    pub covered: f64,
}

/// A profile's figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProfileFigures {
    /// `newest first` or a profile.
    pub name: String,
    /// What is left at each share.
    pub kept: Vec<Kept>,
    /// The share of turns above the threshold.
    pub above_threshold: Option<f64>,
}

/// All figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Conversations.
    pub sessions: usize,
    /// Their turns.
    pub turns: usize,
    /// Their tokens, guessed.
    pub tokens: usize,
    /// Questions with evidence.
    pub questions: usize,
    /// Ways of searching, by name.
    pub search: Vec<(String, Found)>,
    /// What is left, by profile.
    pub keep: Vec<ProfileFigures>,
    /// Turns whose fact was replaced, where the file says so, and how many of those pairs come in the
    /// right order in the full ranking.
    pub updates: (usize, usize),
    /// Turns that must never be lost, where the file says so, and how many were pinned.
    pub pinned: (usize, usize),
}

/// Who speaks.
pub fn origin(role: &str) -> Origin {
    match role {
        "assistant" | "model" => Origin::Model,
        "tool" => Origin::Tool { tool: "tool".to_owned() },
        "system" => Origin::Note,
        _ => Origin::User,
    }
}

/// Scores each turn of a conversation, in order.
pub fn scores(
    dialogue: &Dialogue,
    scoring: &Scoring,
    vectors: Option<&Vectors>,
) -> Vec<Explanation> {
    let mut session = Session::new(scoring.clone());
    let mut scores = Vec::with_capacity(dialogue.turns.len());
    for (at, said) in dialogue.turns.iter().enumerate() {
        let vector = vectors.and_then(|vectors| vectors.turns.get(at));
        let nearest = vector.and_then(|vector| nearest(dialogue, vectors, at, vector));
        scores.push(session.score(Turn {
            text: &said.text,
            kind: classify(&said.text, &origin(&said.role)),
            tokens: tokens(&said.text),
            entities: &Rules.entities(&said.text),
            vector: vector.map(Vec::as_slice),
            nearest: nearest.as_ref().map(|(id, cosine)| (id, *cosine)),
        }));
    }
    scores
}

fn nearest(
    dialogue: &Dialogue,
    vectors: Option<&Vectors>,
    before: usize,
    vector: &[f32],
) -> Option<(FragmentId, f64)> {
    let earlier = vectors?.turns.iter().take(before).enumerate();
    let cosines = earlier.map(|(at, other)| (at, cosine(vector, other)));
    let (at, cosine) = cosines.max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some((id_of(dialogue, at)?, cosine))
}

fn id_of(dialogue: &Dialogue, at: usize) -> Option<FragmentId> {
    dialogue.turns.get(at)?;
    let turn = u64::try_from(at).ok()?;
    let thread = ThreadId::from_parts(0, 0);
    Some(FragmentId { tenant: TenantId::new("eval").ok()?, thread, turn, fragment: 0 })
}

/// The figures of conversations. `vectors` has one entry per conversation, or none at all.
pub fn figures(dialogues: &[Dialogue], vectors: Option<&[Vectors]>, weights: &Weights) -> Figures {
    let mut sums = Sums::default();
    for (number, dialogue) in dialogues.iter().enumerate() {
        let vectors = vectors.and_then(|all| all.get(number));
        sums.dialogue(dialogue, vectors, weights);
    }
    sums.figures(dialogues)
}

const NEWEST: &str = "newest first";

#[derive(Default)]
struct Sums {
    search: Vec<(String, Found)>,
    keep: Vec<(String, Vec<Kept>, (usize, usize))>,
    updates: (usize, usize),
    pinned: (usize, usize),
}

impl Sums {
    fn dialogue(&mut self, dialogue: &Dialogue, vectors: Option<&Vectors>, weights: &Weights) {
        self.keep_row(dialogue, NEWEST, &newest_first(dialogue), (0, 0));
        let mut prior = Vec::new();
        for (profile, name) in [
            (Profile::Raw, "raw"),
            (Profile::Calibrated, "calibrated"),
            (Profile::Balanced, "balanced"),
        ] {
            let told = scores(dialogue, &Scoring { profile, ..Scoring::default() }, vectors);
            let above = told.iter().filter(|one| one.score > one.threshold).count();
            let order: Vec<f64> = told.iter().map(|one| one.score).collect();
            self.keep_row(dialogue, name, &order, (above, told.len()));
            if profile == Profile::Calibrated {
                prior = told;
            }
        }
        self.searches(dialogue, vectors, &prior, weights);
        self.pins(dialogue, &prior);
    }

    fn pins(&mut self, dialogue: &Dialogue, told: &[Explanation]) {
        let must = dialogue.turns.iter().zip(told).filter(|(said, _)| said.pinned);
        for (_, told) in must {
            self.pinned.0 = self.pinned.0.saturating_add(1);
            if told.verdict == Verdict::Pinned {
                self.pinned.1 = self.pinned.1.saturating_add(1);
            }
        }
    }

    fn keep_row(&mut self, dialogue: &Dialogue, name: &str, scores: &[f64], above: (usize, usize)) {
        let rows = SHARES.map(|share| kept(dialogue, scores, share));
        let known = self.keep.iter().position(|(known, ..)| known == name);
        let place = known.unwrap_or_else(|| {
            let zero = SHARES.map(|share| Kept { share, ..Kept::default() });
            self.keep.push((name.to_owned(), zero.to_vec(), (0, 0)));
            self.keep.len().saturating_sub(1)
        });
        let Some(row) = self.keep.get_mut(place) else { return };
        for (sum, one) in row.1.iter_mut().zip(rows) {
            sum.evidence += one.evidence;
            sum.covered += one.covered;
        }
        row.2.0 = row.2.0.saturating_add(above.0);
        row.2.1 = row.2.1.saturating_add(above.1);
    }

    fn searches(
        &mut self,
        dialogue: &Dialogue,
        vectors: Option<&Vectors>,
        told: &[Explanation],
        weights: &Weights,
    ) {
        let searcher = Searcher::new(dialogue, vectors, told, weights);
        for (number, question) in dialogue.questions.iter().enumerate() {
            for (name, order) in searcher.orders(number, &question.text) {
                let found = judged(&order, &question.evidence);
                match self.search.iter_mut().find(|(known, _)| known == name) {
                    Some((_, sum)) => sum.add(found),
                    None => self.search.push((name.to_owned(), found)),
                }
                if name.ends_with(FULL) {
                    self.count_updates(dialogue, &question.evidence, &order);
                }
            }
        }
    }

    /// A question that is answered by a turn which replaced another: both have to stand in order.
    fn count_updates(&mut self, dialogue: &Dialogue, evidence: &[usize], order: &[usize]) {
        for new in evidence {
            let Some(old) = replaced_by(dialogue, *new) else { continue };
            let place = |at: usize| order.iter().position(|one| *one == at).unwrap_or(usize::MAX);
            self.updates.0 = self.updates.0.saturating_add(1);
            if place(*new) < place(old) {
                self.updates.1 = self.updates.1.saturating_add(1);
            }
        }
    }

    fn figures(self, dialogues: &[Dialogue]) -> Figures {
        let questions = dialogues.iter().map(|one| one.questions.len()).sum();
        let all = fraction(questions).max(1.0);
        let said = || dialogues.iter().flat_map(|one| &one.turns);
        let keep = self.keep.into_iter().map(|(name, kept, (above, of))| ProfileFigures {
            name,
            kept: kept.into_iter().map(|one| one.over(all)).collect(),
            above_threshold: (of > 0).then(|| fraction(above) / fraction(of)),
        });
        Figures {
            sessions: dialogues.len(),
            turns: said().count(),
            tokens: said().map(|said| tokens(&said.text)).sum(),
            questions,
            search: self.search.into_iter().map(|(name, sum)| (name, sum.over(all))).collect(),
            keep: keep.collect(),
            updates: self.updates,
            pinned: self.pinned,
        }
    }
}

fn replaced_by(dialogue: &Dialogue, new: usize) -> Option<usize> {
    let old = dialogue.turns.get(new)?.supersedes.as_ref()?;
    dialogue.turns.iter().position(|turn| turn.id == *old)
}

fn newest_first(dialogue: &Dialogue) -> Vec<f64> {
    (0..dialogue.turns.len()).map(fraction).collect()
}

/// Keeps the best turns whose tokens fit.
fn kept(dialogue: &Dialogue, scores: &[f64], share: u32) -> Kept {
    let sizes: Vec<usize> = dialogue.turns.iter().map(|said: &Said| tokens(&said.text)).collect();
    let budget =
        sizes.iter().sum::<usize>().saturating_mul(usize::try_from(share).unwrap_or(0)) / 100;
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    let score = |at: &usize| scores.get(*at).copied().unwrap_or(0.0);
    order.sort_by(|a, b| score(b).total_cmp(&score(a)).then(b.cmp(a)));
    let mut is_kept = vec![false; sizes.len()];
    let mut taken: usize = 0;
    for at in order {
        let size = sizes.get(at).copied().unwrap_or(0);
        if let Some(kept) = is_kept.get_mut(at)
            && taken.saturating_add(size) <= budget
        {
            *kept = true;
            taken = taken.saturating_add(size);
        }
    }
    let mut kept = Kept { share, ..Kept::default() };
    for question in &dialogue.questions {
        let has = |at: &&usize| is_kept.get(**at).copied().unwrap_or(false);
        let there = question.evidence.iter().filter(has).count();
        kept.evidence += fraction(there) / fraction(question.evidence.len()).max(1.0);
        kept.covered += if there == question.evidence.len() { 1.0 } else { 0.0 };
    }
    kept
}

const FULL: &str = "+ neighbour + prior";

struct Searcher<'d> {
    dialogue: &'d Dialogue,
    vectors: Option<&'d Vectors>,
    index: Index,
    known: BTreeMap<FragmentId, Known>,
    weights: &'d Weights,
}

impl<'d> Searcher<'d> {
    fn new(
        dialogue: &'d Dialogue,
        vectors: Option<&'d Vectors>,
        told: &[Explanation],
        weights: &'d Weights,
    ) -> Self {
        let mut index = Index::default();
        dialogue.turns.iter().for_each(|said| index.add(&said.text));
        let replaced: BTreeMap<usize, usize> = (0..dialogue.turns.len())
            .filter_map(|new| Some((replaced_by(dialogue, new)?, new)))
            .collect();
        let known = told.iter().enumerate().filter_map(|(at, told)| {
            let known = Known {
                importance: told.score.clamp(0.0, 1.0),
                kind: told.kind,
                at: Timestamp(i64::try_from(at).unwrap_or(0)),
                invalid_from: None,
                superseded_by: replaced.get(&at).and_then(|new| id_of(dialogue, *new)),
            };
            Some((id_of(dialogue, at)?, known))
        });
        let known = known.collect();
        Self { dialogue, vectors, index, known, weights }
    }

    /// The order that each way of searching gives.
    fn orders(&self, number: usize, question: &str) -> Vec<(&'static str, Vec<usize>)> {
        let lexical: Vec<usize> =
            self.index.search(question).into_iter().take(FOUND).map(|(at, _)| at).collect();
        let Some(dense) = self.dense(number) else {
            let full = self.full(&[&lexical], self.weights);
            return vec![("lexical", lexical), ("lexical + neighbour + prior", full)];
        };
        let plain = Weights { prior: 0.0, neighbour: 0.0, ..self.weights.clone() };
        let hybrid = self.full(&[&lexical, &dense], &plain);
        let full = self.full(&[&lexical, &dense], self.weights);
        vec![
            ("lexical", lexical),
            ("dense", dense),
            ("hybrid", hybrid),
            ("hybrid + neighbour + prior", full),
        ]
    }

    fn dense(&self, number: usize) -> Option<Vec<usize>> {
        let vectors = self.vectors?;
        let question = vectors.questions.get(number)?;
        let turns = vectors.turns.iter().map(|turn| cosine(question, turn)).enumerate();
        let mut order: Vec<(usize, f64)> = turns.collect();
        order.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        Some(order.into_iter().take(FOUND).map(|(at, _)| at).collect())
    }

    fn full(&self, lists: &[&Vec<usize>], weights: &Weights) -> Vec<usize> {
        let ids = |list: &&Vec<usize>| {
            list.iter().filter_map(|at| id_of(self.dialogue, *at)).collect::<Vec<_>>()
        };
        let lists: Vec<Vec<FragmentId>> = lists.iter().map(ids).collect();
        let now = Reading::All(Timestamp(i64::MAX));
        let ranked = rank(&lists, &self.known, weights, now);
        ranked.into_iter().filter_map(|one| usize::try_from(one.id.turn).ok()).collect()
    }
}

fn judged(order: &[usize], evidence: &[usize]) -> Found {
    let hits = |most: usize| order.iter().take(most).filter(|at| evidence.contains(at)).count();
    let gain = |place: usize| 1.0 / (fraction(place) + 2.0).log2();
    let first = order.iter().take(DEPTH).enumerate();
    let gained: f64 =
        first.filter(|(_, at)| evidence.contains(at)).map(|(place, _)| gain(place)).sum();
    let best: f64 = (0..evidence.len().min(DEPTH)).map(gain).sum();
    Found {
        any_at_5: if hits(5) > 0 { 1.0 } else { 0.0 },
        any_at_10: if hits(DEPTH) > 0 { 1.0 } else { 0.0 },
        frac_at_10: fraction(hits(DEPTH)) / fraction(evidence.len()).max(1.0),
        ndcg_at_10: gained / best.max(f64::MIN_POSITIVE),
    }
}

impl Found {
    fn add(&mut self, other: Self) {
        self.any_at_5 += other.any_at_5;
        self.any_at_10 += other.any_at_10;
        self.frac_at_10 += other.frac_at_10;
        self.ndcg_at_10 += other.ndcg_at_10;
    }

    fn over(self, all: f64) -> Self {
        Self {
            any_at_5: self.any_at_5 / all,
            any_at_10: self.any_at_10 / all,
            frac_at_10: self.frac_at_10 / all,
            ndcg_at_10: self.ndcg_at_10 / all,
        }
    }
}

impl Kept {
    fn over(self, all: f64) -> Self {
        Self { share: self.share, evidence: self.evidence / all, covered: self.covered / all }
    }
}

fn fraction(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

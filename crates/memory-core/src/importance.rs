//! How much a turn matters among the turns of its session, and why.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::entity::{self, Entity};
use crate::fragment::FragmentId;
use crate::kind::Kind;
use crate::ranks::{Ranks, peaked, squashed};
use crate::text::{each_term, head};

/// Bytes of a turn that are scored.
const LOOKED_THROUGH: usize = 64 * 1024;
/// Turns that are kept to compare with.
const MOST_RECENT: usize = 16;
/// Stems that a session knows; beyond them a word counts as new.
const MOST_TERMS: usize = 65_536;
/// Whole texts that a session knows.
const MOST_SAID: usize = 16_384;
/// What is left of the score of what is said again.
const REPEATED: f64 = 0.8;
/// The mass that is the middle of the histogram.
const TYPICAL_MASS: f64 = 1.0;
/// What a turn can name at most: many more things in a long text are not worth more of the window.
const FULL_MASS: f64 = 8.0;
/// What a word counts that the session has not had, beside an entity's 1.
const RARE_WORD: f64 = 0.5;

/// Which formula scores a turn.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// The literal formula: 0.6 * entities / words + 0.4 * (1 - cosine with the latest turn).
    Raw,
    /// The same shape over ranks within the session.
    #[default]
    Calibrated,
    /// Calibrated, with a bias by kind.
    Balanced,
}

/// What a turn is held against to see how new it is.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Novelty {
    /// The turn before.
    Latest,
    /// So many turns before.
    Recent(u32),
    /// All of the session.
    #[default]
    Session,
}

/// Why a turn has its score.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// The formula.
    pub profile: Profile,
    /// What it was held against.
    pub novelty: Novelty,
    /// What it is.
    pub kind: Kind,
    /// Weighted entities over the square root of tokens; entities over words in profile `raw`.
    pub mass: f64,
    /// How new it is, 0 to 1.
    pub newness: f64,
    /// The share of the session's turns with less mass; `mass` itself in profile `raw`.
    pub entity_rank: f64,
    /// The share of the session's turns that are less new; `newness` itself in profile `raw`.
    pub novelty_rank: f64,
    /// The weight of `entity_rank`.
    pub entity_weight: f64,
    /// The weight of `novelty_rank`.
    pub novelty_weight: f64,
    /// What its kind adds.
    pub bias: f64,
    /// The nearest turn before and its cosine, where there are vectors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nearest: Option<(FragmentId, f64)>,
    /// The score that it takes to stay verbatim.
    pub threshold: f64,
    /// The score.
    pub score: f64,
    /// What follows.
    pub verdict: Verdict,
}

/// What follows from a score.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Its kind is pinned: it stays, whatever its score.
    Pinned,
    /// It may stay verbatim, as far as there is room.
    Keep,
    /// It does not stay verbatim; long-term memory has it.
    LetGo,
    /// It says again what was said: the earlier one stands for it.
    Repeats,
}

/// How turns are scored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scoring {
    /// The formula.
    pub profile: Profile,
    /// What a turn is held against.
    pub novelty: Novelty,
    /// The weight of what it names.
    pub entity_weight: f64,
    /// The weight of how new it is.
    pub novelty_weight: f64,
    /// The score that it takes to stay verbatim.
    pub threshold: f64,
}

impl Default for Scoring {
    fn default() -> Self {
        Self {
            profile: Profile::default(),
            novelty: Novelty::default(),
            entity_weight: 0.6,
            novelty_weight: 0.4,
            threshold: 0.7,
        }
    }
}

/// A turn to be scored. Its text was redacted.
#[derive(Clone, Copy, Debug)]
pub struct Turn<'t> {
    /// The words.
    pub text: &'t str,
    /// What it is.
    pub kind: Kind,
    /// A guess at its tokens.
    pub tokens: usize,
    /// What it names.
    pub entities: &'t [Entity],
    /// Its vector, where there is an embedder.
    pub vector: Option<&'t [f32]>,
    /// The nearest turn before and its cosine, as the search for duplicates found it.
    pub nearest: Option<(&'t FragmentId, f64)>,
}

/// What is known of a session: enough to score its next turn, and bounded. The same turns in the same
/// order give the same scores.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Session {
    scoring: Scoring,
    mass: Ranks,
    newness: Ranks,
    turns: u32,
    /// In how many turns a stem was, by its hash.
    terms: BTreeMap<u64, u32>,
    /// The newest turns, newest last.
    recent: VecDeque<Recent>,
    /// The scores of whole texts, by their hash.
    said: BTreeMap<u64, f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Recent {
    terms: BTreeMap<u64, u32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    vector: Vec<f32>,
}

impl Session {
    /// A session without turns.
    pub fn new(scoring: Scoring) -> Self {
        Self {
            scoring,
            mass: Ranks::new(&peaked(0.12, 0.3, 0.5)),
            newness: Ranks::new(&peaked(0.1, 0.3, 1.0)),
            turns: 0,
            terms: BTreeMap::new(),
            recent: VecDeque::new(),
            said: BTreeMap::new(),
        }
    }

    /// Scores the next turn and takes it in.
    pub fn score(&mut self, turn: Turn<'_>) -> Explanation {
        let terms = counted_terms(turn.text);
        let whole = hashed(turn.text.trim().to_lowercase().as_bytes());
        let before = self.said.get(&whole).copied();
        let told = match self.scoring.profile {
            Profile::Raw => self.raw(&turn, &terms),
            Profile::Calibrated | Profile::Balanced => self.ranked(&turn, &terms, before.is_some()),
        };
        let told = Self::judged(told, &turn, before);
        self.take_in(&turn, terms, whole, &told);
        told
    }

    /// The literal formula.
    fn raw(&self, turn: &Turn<'_>, terms: &BTreeMap<u64, u32>) -> Explanation {
        let words =
            f64::from(u32::try_from(turn.text.split_whitespace().count()).unwrap_or(u32::MAX));
        let named =
            turn.entities.iter().map(|one| one.text.split_whitespace().count()).sum::<usize>();
        let named = f64::from(u32::try_from(named).unwrap_or(u32::MAX));
        let mass = if words > 0.0 { named / words } else { 0.0 };
        let newness = 1.0 - self.likeness(turn, terms, 1);
        self.told(turn, (mass, newness), (mass, newness))
    }

    fn ranked(
        &self,
        turn: &Turn<'_>,
        terms: &BTreeMap<u64, u32>,
        is_repeated: bool,
    ) -> Explanation {
        // What contradicts is new, however much its words are the old ones.
        let is_correction = turn.kind == Kind::Correction && !is_repeated;
        let mass = self.mass_of(turn, terms, is_correction);
        let newness = if is_correction { 1.0 } else { self.newness_of(turn, terms) };
        let ranks = (self.mass.rank(squashed(mass, TYPICAL_MASS)), self.newness.rank(newness));
        self.told(turn, (mass, newness), ranks)
    }

    /// Entities by the weight of their kind, and words by how rare they are in this session, up to a
    /// full measure, over the square root of the length: neither a list nor a long text wins by its size.
    fn mass_of(&self, turn: &Turn<'_>, terms: &BTreeMap<u64, u32>, is_new: bool) -> f64 {
        let rarity = |term: &u64| if is_new { 1.0 } else { self.rarity(*term) };
        let rare: f64 = terms.keys().map(rarity).sum();
        let tokens = f64::from(u32::try_from(turn.tokens.max(4)).unwrap_or(u32::MAX));
        let named = entity::mass(turn.entities) + RARE_WORD * rare;
        FULL_MASS * (1.0 - (-named / FULL_MASS).exp()) / tokens.sqrt()
    }

    /// 1 for a word that the session has not had, falling to 0 for one that is in every turn.
    fn rarity(&self, term: u64) -> f64 {
        let seen = f64::from(self.terms.get(&term).copied().unwrap_or(0));
        let all = f64::from(self.turns) + 2.0;
        ((all / (seen + 1.0)).ln() / all.ln()).clamp(0.0, 1.0)
    }

    fn newness_of(&self, turn: &Turn<'_>, terms: &BTreeMap<u64, u32>) -> f64 {
        let (turns, whole) = match self.scoring.novelty {
            Novelty::Latest => (1, false),
            Novelty::Recent(n) => (usize::try_from(n).unwrap_or(1).clamp(1, MOST_RECENT), false),
            Novelty::Session => (3, true),
        };
        let has_vectors = turn.vector.is_some();
        if whole && !has_vectors {
            return self.unseen(terms);
        }
        let near = self.likeness(turn, terms, turns);
        let nearest = turn.nearest.filter(|_| whole).map_or(0.0, |(_, cosine)| cosine);
        (1.0 - near.max(nearest)).clamp(0.0, 1.0)
    }

    /// The mean rarity of its content words: the share that the session has not had, where a word that
    /// was had once counts nearly as much.
    fn unseen(&self, terms: &BTreeMap<u64, u32>) -> f64 {
        let all = f64::from(u32::try_from(terms.len()).unwrap_or(u32::MAX));
        let fresh: f64 = terms.keys().map(|term| self.rarity(*term)).sum();
        if all > 0.0 { fresh / all } else { 0.0 }
    }

    /// The highest cosine with one of the newest turns; of vectors, or of words where there are none.
    fn likeness(&self, turn: &Turn<'_>, terms: &BTreeMap<u64, u32>, turns: usize) -> f64 {
        let newest = self.recent.iter().rev().take(turns);
        let cosines = newest.map(|one| match turn.vector {
            Some(vector) if !one.vector.is_empty() => cosine(vector, &one.vector),
            Some(_) | None => word_cosine(terms, &one.terms),
        });
        cosines.fold(0.0, f64::max)
    }

    fn told(&self, turn: &Turn<'_>, (mass, newness): (f64, f64), ranks: (f64, f64)) -> Explanation {
        let Scoring { profile, novelty, entity_weight, novelty_weight, threshold } = self.scoring;
        let bias = if profile == Profile::Balanced { bias(turn.kind) } else { 0.0 };
        let (entity_rank, novelty_rank) = ranks;
        Explanation {
            profile,
            novelty,
            kind: turn.kind,
            mass,
            newness,
            entity_rank,
            novelty_rank,
            entity_weight,
            novelty_weight,
            bias,
            nearest: turn.nearest.map(|(id, cosine)| (id.clone(), cosine)),
            threshold,
            score: entity_weight * entity_rank + novelty_weight * novelty_rank + bias,
            verdict: Verdict::LetGo,
        }
    }

    fn judged(mut told: Explanation, turn: &Turn<'_>, before: Option<f64>) -> Explanation {
        let is_raw = told.profile == Profile::Raw;
        let repeats = before.filter(|_| !is_raw);
        if let Some(before) = repeats {
            told.score = told.score.min(before * REPEATED);
        }
        told.verdict = match (turn.kind.is_pinned(), repeats, told.score > told.threshold) {
            (true, ..) if !is_raw => Verdict::Pinned,
            (_, Some(_), _) => Verdict::Repeats,
            (_, None, true) => Verdict::Keep,
            (_, None, false) => Verdict::LetGo,
        };
        told
    }

    fn take_in(
        &mut self,
        turn: &Turn<'_>,
        terms: BTreeMap<u64, u32>,
        whole: u64,
        told: &Explanation,
    ) {
        self.turns = self.turns.saturating_add(1);
        self.mass.add(squashed(told.mass, TYPICAL_MASS));
        self.newness.add(told.newness);
        for term in terms.keys() {
            let has_room = self.terms.len() < MOST_TERMS;
            match self.terms.get_mut(term) {
                Some(count) => *count = count.saturating_add(1),
                None if has_room => {
                    self.terms.insert(*term, 1);
                }
                None => {}
            }
        }
        if self.said.len() < MOST_SAID {
            self.said.entry(whole).or_insert(told.score);
        }
        if self.recent.len() == MOST_RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(Recent { terms, vector: turn.vector.unwrap_or_default().to_vec() });
    }
}

/// What its kind adds in profile `balanced`.
pub fn bias(kind: Kind) -> f64 {
    match kind {
        Kind::Correction | Kind::Decision | Kind::Constraint | Kind::Preference => 0.2,
        Kind::Assertion => 0.1,
        Kind::Question => -0.2,
        Kind::Instruction
        | Kind::OpenTask
        | Kind::CredentialRef
        | Kind::Warning
        | Kind::Observation
        | Kind::Document
        | Kind::Talk => 0.0,
    }
}

fn counted_terms(text: &str) -> BTreeMap<u64, u32> {
    let mut counts = BTreeMap::new();
    each_term(head(text, LOOKED_THROUGH), |term| {
        let count: &mut u32 = counts.entry(hashed(term.as_bytes())).or_default();
        *count = count.saturating_add(1);
    });
    counts
}

/// FNV-1a: the same on every machine and in every build, so what was kept can be read.
fn hashed(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The cosine of two vectors; 0 when their lengths differ.
pub fn cosine(a: &[f32], b: &[f32]) -> f64 {
    if a.len() != b.len() {
        return 0.0;
    }
    let dot = |a: &[f32], b: &[f32]| {
        a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>()
    };
    let norm = (dot(a, a) * dot(b, b)).sqrt();
    if norm > 0.0 { dot(a, b) / norm } else { 0.0 }
}

fn word_cosine(a: &BTreeMap<u64, u32>, b: &BTreeMap<u64, u32>) -> f64 {
    let square = |counts: &BTreeMap<u64, u32>| {
        counts.values().map(|count| f64::from(*count).powi(2)).sum::<f64>()
    };
    let both = a.iter().filter_map(|(term, n)| b.get(term).map(|m| f64::from(*n) * f64::from(*m)));
    let norm = (square(a) * square(b)).sqrt();
    if norm > 0.0 { both.sum::<f64>() / norm } else { 0.0 }
}

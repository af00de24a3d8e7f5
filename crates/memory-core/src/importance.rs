//! How much a turn matters among the turns of its session, and why.

use serde::{Deserialize, Serialize};

use crate::fragment::FragmentId;
use crate::kind::Kind;

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

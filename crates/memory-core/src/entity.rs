//! Names, numbers, paths and the like.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

mod rules;
mod shapes;

/// Bytes of a text that are looked through.
const LOOKED_THROUGH: usize = 64 * 1024;
/// Entities that are told of one text.
const MOST: usize = 64;
/// Entities of one kind that count: a dump of numbers is not worth more than a few of them.
const MOST_OF_A_KIND: usize = 6;
/// Bytes of an entity.
const LONGEST: usize = 120;

/// What an entity is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntityKind {
    /// A word with digits, dashes or underscores in it.
    Identifier,
    /// A path of a file.
    Path,
    /// A URL.
    Url,
    /// An e-mail address.
    Email,
    /// A version.
    Version,
    /// An error code.
    ErrorCode,
    /// An amount, with its unit where there is one.
    Amount,
    /// A date, a time, or a word such as "yesterday".
    Time,
    /// Words in quotation marks.
    Quote,
    /// A symbol of a program.
    Symbol,
    /// A scalar of a tool's JSON.
    Scalar,
    /// A capitalised name.
    Name,
}

impl EntityKind {
    /// How much one of it counts. Scalars of JSON come in heaps.
    pub fn weight(self) -> f64 {
        match self {
            Self::Scalar => 0.4,
            Self::Symbol | Self::Identifier | Self::Path | Self::Url => 0.8,
            Self::Email
            | Self::Version
            | Self::ErrorCode
            | Self::Amount
            | Self::Time
            | Self::Quote
            | Self::Name => 1.0,
        }
    }
}

/// Something that a text names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Entity {
    /// What it is.
    pub kind: EntityKind,
    /// As it was written.
    pub text: String,
}

/// Finds entities in text that was redacted. The rules here need no model; a model for names is
/// another implementation.
pub trait Extract {
    /// The distinct entities, in the order they first come.
    fn entities(&self, text: &str) -> Vec<Entity>;
}

/// The rules: identifiers, paths, URLs, e-mail, versions, error codes, amounts with their unit, dates
/// and relative times, quoted words, code symbols, scalars of JSON, and capitalised names that do not
/// begin a sentence.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rules;

impl Extract for Rules {
    fn entities(&self, text: &str) -> Vec<Entity> {
        let mut found = Found::default();
        let text = crate::text::head(text, LOOKED_THROUGH);
        match json_of(text) {
            Some(value) => rules::scalars(&value, "", &mut found),
            None => rules::words(text, &mut found),
        }
        found.entities
    }
}

/// A tool's result that is JSON as a whole.
fn json_of(text: &str) -> Option<serde_json::Value> {
    let trimmed = text.trim();
    let is_likely = trimmed.starts_with(['{', '[']) && trimmed.ends_with(['}', ']']);
    is_likely.then(|| serde_json::from_str(trimmed).ok()).flatten()
}

/// The sum of the weights, each kind counted up to a few.
pub fn mass(entities: &[Entity]) -> f64 {
    let mut counts = std::collections::BTreeMap::new();
    let mut sum = 0.0;
    for entity in entities {
        let count: &mut usize = counts.entry(entity.kind).or_default();
        *count = count.saturating_add(1);
        if *count <= MOST_OF_A_KIND {
            sum += entity.kind.weight();
        }
    }
    sum
}

#[derive(Default)]
struct Found {
    entities: Vec<Entity>,
    seen: BTreeSet<String>,
}

impl Found {
    fn is_full(&self) -> bool {
        self.entities.len() >= MOST
    }

    fn add(&mut self, kind: EntityKind, text: &str) {
        if self.is_full() || text.is_empty() || text.contains(REDACTED) {
            return;
        }
        let text = crate::text::head(text, LONGEST);
        if self.seen.insert(text.to_lowercase()) {
            self.entities.push(Entity { kind, text: text.to_owned() });
        }
    }
}

/// What stands where a secret was taken out; it names nothing.
const REDACTED: &str = "[redacted";

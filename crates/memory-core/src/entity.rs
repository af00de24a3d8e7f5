//! Names, numbers, paths and the like.

use serde::{Deserialize, Serialize};

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

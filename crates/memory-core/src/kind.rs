//! What a piece is.

use serde::{Deserialize, Serialize};

/// What a piece is.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// How to behave from now on.
    Instruction,
    /// What must not happen, or a limit.
    Constraint,
    /// What was settled.
    Decision,
    /// What was said before is not so.
    Correction,
    /// What somebody likes or wants.
    Preference,
    /// A question.
    Question,
    /// A statement about somebody or something.
    Assertion,
    /// Something that is to be done.
    OpenTask,
    /// Where a secret is kept, never the secret.
    CredentialRef,
    /// What may harm, until it is referred to.
    Warning,
    /// A tool's result.
    Observation,
    /// A section of a document.
    Document,
    /// Anything else.
    #[default]
    Talk,
}

impl Kind {
    /// Pinned kinds are never scored, never compacted, and have a quota of their own: similarity does
    /// not find an instruction when it matters.
    pub fn is_pinned(self) -> bool {
        matches!(
            self,
            Self::Instruction
                | Self::Constraint
                | Self::OpenTask
                | Self::CredentialRef
                | Self::Warning
        )
    }

    /// The word used in files, stores and answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Instruction => "instruction",
            Self::Constraint => "constraint",
            Self::Decision => "decision",
            Self::Correction => "correction",
            Self::Preference => "preference",
            Self::Question => "question",
            Self::Assertion => "assertion",
            Self::OpenTask => "open_task",
            Self::CredentialRef => "credential_ref",
            Self::Warning => "warning",
            Self::Observation => "observation",
            Self::Document => "document",
            Self::Talk => "talk",
        }
    }
}

mod rules;

pub use rules::{classify, quotes_kept};

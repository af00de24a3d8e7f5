//! Ports: what planners, workers and the gateway need from the world, as traits with contracts.
//!
//! An adapter implements these with one technology; `testkit` has fakes and one conformance suite
//! per port that every adapter has to pass. Every call that may cross a network has a deadline of
//! its own inside the adapter and answers with an error rather than hang.
//!
//! Reading order: [`journal`] · [`queues`] · [`append`] · [`inputs`] · [`live`] · [`working_memory`] ·
//! [`reads`] · [`artifacts`] · [`registry`] · [`freezes`] · [`model`] · [`recall`] · [`embedder`] ·
//! [`feed`] · [`clock`] · [`deployment`]

pub mod admission;
pub mod append;
pub mod artifacts;
pub mod clock;
pub mod deployment;
pub mod embedder;
pub mod feed;
pub mod freezes;
pub mod inputs;
pub mod journal;
pub mod live;
pub mod model;
pub mod queues;
pub mod reads;
pub mod recall;
pub mod registry;
pub mod working_memory;

use proto::error_code::ErrorCode;

/// A store or bus that did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BusError {
    /// It does not answer or answers that it cannot now; nothing is known about a write.
    #[error("the store does not answer: {0}")]
    Unavailable(String),
    /// It has no room; nothing was written.
    #[error("the store is full: {0}")]
    Full(String),
    /// It is damaged; somebody has to look.
    #[error("the store is damaged: {0}")]
    Corrupt(String),
    /// Another process holds it.
    #[error("the store is held by another process: {0}")]
    Locked(String),
    /// The payload is larger than it takes; nothing was written.
    #[error("{bytes} bytes are more than the {limit} the store takes in one message")]
    TooLarge {
        /// The size asked for.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// It refused for another reason that repeating will not change.
    #[error("the store refused: {0}")]
    Refused(String),
}

impl BusError {
    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Unavailable(_) | Self::Refused(_) => ErrorCode::StoreUnavailable,
            Self::Full(_) => ErrorCode::StoreFull,
            Self::Corrupt(_) => ErrorCode::StoreCorrupt,
            Self::Locked(_) => ErrorCode::StoreLocked,
            Self::TooLarge { .. } => ErrorCode::MessageTooLarge,
        }
    }

    /// Whether the same call may succeed later without anybody's help.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }
}

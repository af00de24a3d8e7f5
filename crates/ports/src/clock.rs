//! Time, names and chance, so that tests and simulations can own them.

use std::time::Duration;

use proto::ids::{Nonce, ThreadId, ToolCallId};
use proto::time::Timestamp;

/// A process's own wall clock; may be minutes off.
pub trait Clock: Send + Sync {
    /// The time it believes it is.
    fn now(&self) -> Timestamp;
}

/// Fresh names and chance.
pub trait Ids: Send + Sync {
    /// A nonce nobody else makes.
    fn nonce(&self) -> Nonce;

    /// A call id; unique in practice, checked by the fold.
    fn tool_call_id(&self) -> ToolCallId;

    /// A thread id for a thread born at `now`.
    fn thread_id(&self, now: Timestamp) -> ThreadId;

    /// A random span from zero to `most`, for jitter.
    fn jitter(&self, most: Duration) -> Duration;
}

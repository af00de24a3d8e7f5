//! State that several callers change in short steps.

#![expect(
    clippy::disallowed_types,
    reason = "an adapter's own state in memory, reached through closures that never wait"
)]

use std::sync::{Mutex, PoisonError};

/// A value behind a lock that is never held across a wait.
#[derive(Debug, Default)]
pub(crate) struct Guarded<T>(Mutex<T>);

impl<T> Guarded<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Runs `change` alone. A panic inside an earlier change does not lock everybody out.
    pub(crate) fn with<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

//! The one lock of a world.

use std::sync::{MutexGuard, PoisonError};

/// The state while it is held.
pub(crate) type Locked<'a, T> = MutexGuard<'a, T>;

/// State that all processes of a world touch. Never held over an await or a call of the bus.
#[derive(Debug, Default)]
pub(crate) struct Lock<T>(
    #[expect(clippy::disallowed_types, reason = "all processes of a world share one thread")]
    std::sync::Mutex<T>,
);

impl<T> Lock<T> {
    #[expect(clippy::disallowed_types, reason = "all processes of a world share one thread")]
    pub(crate) fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! The one lock of the fakes.

use std::sync::{MutexGuard, PoisonError};

/// State that several handles of one fake share. Never held over an await.
#[derive(Debug, Default)]
pub(crate) struct Lock<T>(
    #[expect(clippy::disallowed_types, reason = "handles of one fake share its state")]
    std::sync::Mutex<T>,
);

impl<T> Lock<T> {
    #[expect(clippy::disallowed_types, reason = "handles of one fake share its state")]
    pub(crate) fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }

    /// A test that panicked elsewhere is reported there, so poison is passed over.
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! Work that may take too long, in a thread of its own.

use std::time::Duration;

/// What `work` answers; `None` when it panicked or took longer than `limit`. It is not stopped then:
/// hand it only work that ends by itself.
pub async fn within<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let done = tokio::task::spawn_blocking(work);
    tokio::time::timeout(limit, done).await.ok()?.ok()
}

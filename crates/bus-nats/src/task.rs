//! A task that ends with its owner.

use tokio::sync::oneshot;

/// Runs until its work is over or this is dropped; what the work holds is then dropped in the task,
/// so that a subscription tells the server that nobody listens any more.
pub(crate) struct Task {
    _stop: oneshot::Sender<()>,
}

impl Task {
    #[expect(clippy::disallowed_methods, reason = "the task ends when its owner is dropped")]
    pub(crate) fn start(work: impl Future<Output = ()> + Send + 'static) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        tokio::spawn(async move {
            tokio::select! {
                () = work => {}
                _ = stopped => {}
            }
        });
        Self { _stop: stop }
    }
}

//! Named tasks that belong to a service: none is loose, none outlives its set, a panic is heard.

use std::future::Future;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::task::JoinSet;
use tracing::Instrument;

/// The tasks of one service. Dropping it aborts them.
#[derive(Debug, Default)]
pub struct TaskSet {
    tasks: JoinSet<&'static str>,
}

impl TaskSet {
    /// An empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts a task.
    pub fn start(&mut self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        self.reap();
        let span = tracing::debug_span!("task", name);
        // An `async` block around it would hold the task twice: as what it captured and as what it
        // awaits.
        self.tasks.spawn(task.map(move |()| name).instrument(span));
    }

    /// How many still run.
    pub fn len(&mut self) -> usize {
        self.reap();
        self.tasks.len()
    }

    /// Whether none runs.
    pub fn is_empty(&mut self) -> bool {
        self.len() == 0
    }

    /// Waits until one task has ended. Pending for ever while there is none.
    pub async fn ended(&mut self) {
        match self.tasks.join_next().await {
            Some(result) => report(result),
            None => std::future::pending().await,
        }
    }

    /// Waits for all tasks, at most for `grace`; answers whether all ended. The rest is aborted.
    pub async fn finish(&mut self, grace: Duration) -> bool {
        let all = async {
            while let Some(result) = self.tasks.join_next().await {
                report(result);
            }
        };
        let in_time = tokio::time::timeout(grace, all).await.is_ok();
        self.tasks.abort_all();
        in_time
    }

    fn reap(&mut self) {
        while let Some(result) = self.tasks.try_join_next() {
            report(result);
        }
    }
}

fn report(result: Result<&'static str, tokio::task::JoinError>) {
    match result {
        Ok(name) => tracing::trace!(name, "task ended"),
        Err(error) if error.is_cancelled() => {}
        Err(error) => tracing::error!(%error, "task panicked"),
    }
}

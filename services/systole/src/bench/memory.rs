//! Many threads that wait for a slow model: what the process takes.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use service_runtime::tasks::TaskSet;

use super::files::NO_OP;
use super::model::ModelClient;
use super::processes::resident_mb;
use super::script::SLOW_MODEL;
use super::statistics::{number, ratio};
use super::world::{Shape, World};
use crate::commands::Context;
use crate::failure::Failure;

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Memory {
    pub(crate) threads: usize,
    pub(crate) before_mb: f64,
    pub(crate) resident_mb: f64,
}

impl Memory {
    /// What each thread adds.
    pub(crate) fn kb_per_thread(&self) -> f64 {
        let kilobytes = (self.resident_mb - self.before_mb) * 1024.0;
        ratio(kilobytes, number(self.threads))
    }
}

/// Measures it once the model has been asked by every thread and has answered none.
pub(crate) async fn measure(
    context: &Context,
    url: &str,
    threads: usize,
) -> Result<Memory, Failure> {
    let model = ModelClient::new(url)?;
    let before = model.counts().await?.requests;
    let shape = Shape { url, model: SLOW_MODEL, early: "safe", tools: NO_OP, synced: true };
    let world = Arc::new(World::start(context, &shape).await?);
    let before_mb = resident_mb(std::process::id());
    let mut tasks = TaskSet::new();
    for _ in 0..threads {
        let world = Arc::clone(&world);
        tasks.start("begin", async move {
            if let Err(failure) = world.begin(&world.fresh()).await {
                tracing::error!(%failure, "a thread did not begin");
            }
        });
    }
    let wanted = u64::try_from(threads).unwrap_or(u64::MAX);
    model.arrived(before.saturating_add(wanted)).await?;
    tasks.finish(Duration::from_secs(1)).await;
    Ok(Memory { threads, before_mb, resident_mb: resident_mb(std::process::id()) })
}

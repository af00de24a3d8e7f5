//! From the start of a process to its first request to the model.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::files;
use super::model::ModelClient;
use super::processes::{SELF, bounded, quiet};
use super::script::ANSWER;
use super::statistics::{median, millis};
use crate::failure::Failure;

/// A run that only answers must be over by then.
const LONGEST: Duration = Duration::from_secs(20);

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cold {
    pub(crate) starts: usize,
    pub(crate) median_ms: f64,
    pub(crate) worst_ms: f64,
}

/// Measures it with `systole run` on a fresh store each time.
pub(crate) async fn measure(
    folder: &Path,
    model: &ModelClient,
    starts: usize,
) -> Result<Cold, Failure> {
    let failed = |error: std::io::Error| Failure::other("a cold start", error);
    std::fs::write(folder.join("agent.yaml"), files::agent(ANSWER, "safe", files::NO_OP))
        .map_err(failed)?;
    std::fs::write(folder.join("tools.yaml"), files::MANIFEST).map_err(failed)?;
    let mut samples = Vec::with_capacity(starts);
    for number in 0..starts {
        samples.push(millis(start(folder, model, number).await?));
    }
    let worst_ms = samples.iter().copied().fold(0.0, f64::max);
    Ok(Cold { starts, median_ms: median(&samples), worst_ms })
}

async fn start(folder: &Path, model: &ModelClient, number: usize) -> Result<Duration, Failure> {
    let failed = |error: std::io::Error| Failure::other("a cold start", error);
    let next = model.counts().await?.requests.saturating_add(1);
    let mut command = quiet(SELF);
    command.arg("--store").arg(folder.join(format!("cold-{number}/store.db")));
    command.arg("run").arg(folder.join("agent.yaml")).args(["Go.", "--json"]);
    command.env("OPENAI_BASE_URL", &model.url).env_remove("OPENAI_API_KEY");
    command.env_remove("SYSTOLE_MODEL");
    let arrived = model.arrived(next);
    let began = Instant::now();
    let mut child = command.spawn().map_err(failed)?;
    let came = arrived.await.map(|()| began.elapsed());
    bounded(&mut child, LONGEST).await.map_err(failed)?;
    came
}

//! One thread on an idle machine: what a turn takes beside the model and the tools.

use serde::{Deserialize, Serialize};

use super::files::NO_OP;
use super::model::ModelClient;
use super::script::{FAST, TURNS_WITH_CALLS};
use super::statistics::{median, millis, number, quantile, ratio};
use super::world::{Shape, World};
use crate::commands::Context;
use crate::failure::Failure;

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Overhead {
    pub(crate) runs: usize,
    pub(crate) median_ms_per_turn: f64,
    pub(crate) p90_ms_per_turn: f64,
}

/// Measures it: the wall time of a run less the model's own, by its number of turns. The tool takes
/// no time, so its calls count as overhead too.
pub(crate) async fn measure(
    context: &Context,
    url: &str,
    runs: usize,
) -> Result<Overhead, Failure> {
    let model = ModelClient::new(url)?;
    let shape = Shape { url, model: FAST, early: "safe", tools: NO_OP, synced: true };
    let world = World::start(context, &shape).await?;
    world.run(&world.fresh()).await?;
    let mut samples = Vec::with_capacity(runs);
    for _ in 0..runs {
        let before = model.counts().await?;
        let wall = millis(world.run(&world.fresh()).await?);
        let busy_ns = model.counts().await?.busy_ns.saturating_sub(before.busy_ns);
        let busy = millis(std::time::Duration::from_nanos(busy_ns));
        samples.push(ratio(wall - busy, number(TURNS_WITH_CALLS) + 1.0));
    }
    world.stop().await?;
    Ok(Overhead {
        runs,
        median_ms_per_turn: median(&samples),
        p90_ms_per_turn: quantile(&samples, 0.9),
    })
}

//! A model that speaks, asks for two tools and speaks on: when its first words are seen, and when the
//! run has ended.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::files::WAITING;
use super::script::PACED;
use super::statistics::millis;
use super::world::{Shape, World};
use crate::commands::Context;
use crate::failure::Failure;

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Early {
    pub(crate) early_dispatch: String,
    pub(crate) first_text_ms: f64,
    pub(crate) total_ms: f64,
}

/// Measures it.
pub(crate) async fn measure(
    context: &Context,
    url: &str,
    early: &str,
    words_per_second: u32,
) -> Result<Early, Failure> {
    let model = format!("{PACED}{words_per_second}");
    let shape = Shape { url, model: &model, early, tools: WAITING, synced: true };
    let world = World::start(context, &shape).await?;
    let place = world.fresh();
    let mut spoken = world.listen(&place).await?;
    let began = Instant::now();
    let first = async {
        spoken.next().await;
        began.elapsed()
    };
    let (total, first) = tokio::join!(world.run(&place), first_or_never(first));
    let measured = Early {
        early_dispatch: early.to_owned(),
        first_text_ms: millis(first),
        total_ms: millis(total?),
    };
    world.stop().await?;
    Ok(measured)
}

/// A run without words must not be waited for.
async fn first_or_never(first: impl Future<Output = Duration>) -> Duration {
    let longest = Duration::from_mins(1);
    tokio::time::timeout(longest, first).await.unwrap_or(longest)
}

//! The clock of one process is wrong by minutes: nothing may depend on it.

use std::path::PathBuf;

use tokio::time::Instant;

use super::cells::Role;
use super::fault::Clock;
use super::judge::{Kept, judge};
use super::servers::Programs;
use super::stage::{Found, Stage};
use super::world::Wanted;
use crate::failure::Failure;

/// By how much.
const OFF_S: i64 = 300;

/// Runs orders while the clock of a role is ahead or behind.
pub(crate) async fn off(
    programs: &Programs,
    role: Role,
    clock: Clock,
    threads: usize,
    folder: PathBuf,
) -> Result<(Stage, Found), Failure> {
    let stage = Stage::open(programs, folder).await?;
    let Stage { world, client, .. } = &stage;
    let ahead_s = match clock {
        Clock::Ahead => OFF_S,
        Clock::Behind => -OFF_S,
    };
    let mut nodes = Vec::new();
    for one in [Role::Planner, Role::Worker] {
        let ahead_s = if one == role { ahead_s } else { 0 };
        nodes.push(world.node(Wanted { ahead_s, ..Wanted::of(one) }).await?);
    }
    let since = Instant::now();
    let places = client.send("order r0", threads).await?;
    client.until_rest(&places).await;
    let recovered = since.elapsed();
    let counts = judge(client.journal().as_ref(), &places, &world.effects(), Kept::Whole).await?;
    let closed =
        (counts.closed > 0).then(|| "a call was closed although its worker lives".to_owned());
    drop(nodes);
    let violations = closed.into_iter().collect();
    Ok((stage, Found { reached: true, places, recovered, violations, ..Found::default() }))
}

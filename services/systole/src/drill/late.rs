//! A worker stands still past the deadline of its calls, and then goes on.

use std::path::PathBuf;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::after::Ends;
use super::cells::Role;
use super::outage::until_booked;
use super::servers::Programs;
use super::stage::{Found, Stage};
use super::world::Wanted;
use crate::failure::Failure;

/// How long a result may take after the worker goes on.
const LATE: Duration = Duration::from_mins(1);
/// How long it has to do what it must not.
const AFTERWARDS: Duration = Duration::from_secs(3);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(50);

/// Stops the only worker while its tools are under way, until a planner has closed every call; then
/// its results come, which are kept as late and alter nothing.
pub(crate) async fn stopped(
    programs: &Programs,
    threads: usize,
    folder: PathBuf,
) -> Result<(Stage, Found), Failure> {
    let stage = Stage::open(programs, folder).await?;
    let Stage { world, client, .. } = &stage;
    let planner = world.node(Wanted::of(Role::Planner)).await?;
    let worker = world.node(Wanted::of(Role::Worker)).await?;
    let places = client.send("hold r0", threads).await?;
    let booked = until_booked(world, 1).await;
    worker.stop()?;
    let since = Instant::now();
    client.until_rest(&places).await;
    let recovered = since.elapsed();
    let ends = Ends::of(client, &places).await?;
    worker.resume()?;
    let latest = Instant::now() + LATE;
    while ends.late(client).await? == 0 && Instant::now() < latest {
        sleep(LOOK).await;
    }
    let reached = booked && ends.late(client).await? > 0;
    sleep(AFTERWARDS).await;
    let violations = ends.altered(client).await?;
    drop((planner, worker));
    Ok((stage, Found { reached, places, recovered, violations, ..Found::default() }))
}

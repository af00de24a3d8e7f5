//! The stream's history is delivered again, while runs are under way and after they have ended.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::after::Ends;
use super::cells::Role;
use super::outage::{CONSUMERS, delete_consumers, until_booked};
use super::servers::Programs;
use super::stage::{Found, Stage};
use super::world::{Wanted, World};
use crate::failure::Failure;

/// How long the whole history may take.
const REPLAY: Duration = Duration::from_mins(2);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(50);

/// Deletes every consumer twice; the processes create them anew, from the first record on.
pub(crate) async fn replayed(
    programs: &Programs,
    threads: usize,
    folder: PathBuf,
) -> Result<(Stage, Found), Failure> {
    let stage = Stage::open(programs, folder).await?;
    let Stage { world, client, .. } = &stage;
    let planner = world.node(Wanted::of(Role::Planner)).await?;
    let worker = world.node(Wanted::of(Role::Worker)).await?;
    let places = client.send("order r0", threads).await?;
    let mut reached = until_booked(world, 1).await;
    let since = Instant::now();
    delete_consumers(world).await?;
    client.until_rest(&places).await;
    let recovered = since.elapsed();
    let ends = Ends::of(client, &places).await?;
    delete_consumers(world).await?;
    reached &= until_replayed(world, threads).await?;
    let violations = ends.altered(client).await?;
    drop((planner, worker));
    Ok((stage, Found { reached, places, recovered, violations, ..Found::default() }))
}

/// Every consumer is there again, has delivered as much as there are threads at least, and nothing of
/// it is held any more.
async fn until_replayed(world: &World, threads: usize) -> Result<bool, Failure> {
    let latest = Instant::now() + REPLAY;
    for consumer in CONSUMERS {
        let subject = format!("$JS.API.CONSUMER.INFO.SY_0.{consumer}");
        loop {
            let info = world.bus_server()?.ask(&subject, "").await?;
            let number = |path: &str| info.pointer(path).and_then(Value::as_u64);
            let delivered = number("/delivered/consumer_seq").unwrap_or(0);
            let is_over =
                number("/num_pending") == Some(0) && number("/num_ack_pending") == Some(0);
            if is_over && usize::try_from(delivered).is_ok_and(|count| count >= threads) {
                break;
            }
            if Instant::now() > latest {
                return Ok(false);
            }
            sleep(LOOK).await;
        }
    }
    Ok(true)
}

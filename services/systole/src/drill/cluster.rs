//! The server that leads the stream is killed while many turns are open.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::cells::Role;
use super::judge::{Kept, judge};
use super::servers::{CLUSTER, Programs, Server};
use super::stage::{Found, Stage};
use super::world::{Node, Wanted, World};
use crate::failure::Failure;

/// How long the leader is away.
const AWAY: Duration = Duration::from_secs(1);
/// How long the turns may take to be open.
const REACH: Duration = Duration::from_mins(2);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(100);
/// How long a turn lasts, and how much longer for each that has to be opened before the kill.
const THINKS: (Duration, Duration) = (Duration::from_secs(8), Duration::from_millis(40));
/// Model calls for each hundred turns, at most.
const MOST_OF_HUNDRED: usize = 105;

/// Opens so many turns on two planners and kills the stream's leader.
pub(crate) async fn run(
    programs: &Programs,
    turns: usize,
    folder: PathBuf,
) -> Result<(Stage, Found), Failure> {
    let more = THINKS.1.saturating_mul(u32::try_from(turns).unwrap_or(u32::MAX));
    let thinks = THINKS.0.saturating_add(more);
    let world = World::clustered(programs, folder.clone(), thinks).await?;
    let stage = Stage::of(world, folder).await?;
    let Stage { world, client, .. } = &stage;
    let worker = world.node(Wanted::of(Role::Worker)).await?;
    let mut planners = Vec::new();
    for _ in 0..2 {
        planners.push(world.node(Wanted::of(Role::Planner)).await?);
    }
    let places = client.send("think r0", turns).await?;
    let reached = until_open(&planners, turns).await;
    let since = Instant::now();
    leader(world).await?.crash(AWAY).await?;
    client.until_rest(&places).await;
    let recovered = since.elapsed();
    let counts = judge(client.journal().as_ref(), &places, &world.effects(), Kept::Whole).await?;
    let asked = turns.saturating_add(counts.model_calls_repeated);
    let is_too_much = asked.saturating_mul(100) > turns.saturating_mul(MOST_OF_HUNDRED);
    let violations = is_too_much.then(|| format!("{asked} model calls for {turns} turns"));
    drop((planners, worker));
    let violations = violations.into_iter().collect();
    Ok((stage, Found { reached, kills: 1, places, recovered, violations, ..Found::default() }))
}

/// Every turn is open at once.
async fn until_open(planners: &[Node], turns: usize) -> bool {
    let wanted = u32::try_from(turns).map_or(f64::MAX, f64::from);
    let latest = Instant::now() + REACH;
    while Instant::now() < latest {
        let mut open = 0.0;
        for planner in planners {
            open += planner.metric("systole_planner_turns_in_flight").await;
        }
        if open >= wanted {
            return true;
        }
        sleep(LOOK).await;
    }
    false
}

/// The server that leads the stream.
async fn leader(world: &World) -> Result<&Server, Failure> {
    let info = world.bus_server()?.ask("$JS.API.STREAM.INFO.SY_0", "").await?;
    let name = info.pointer("/cluster/leader").and_then(Value::as_str).unwrap_or_default();
    let index = CLUSTER.iter().position(|server| *server == name);
    let server = index.and_then(|index| world.nats.get(index));
    server.ok_or_else(|| Failure::other("the stream's leader", format!("it is {name:?}")))
}

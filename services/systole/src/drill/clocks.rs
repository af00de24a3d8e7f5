//! The clock of one process is wrong by minutes: nothing may depend on it.

use std::path::PathBuf;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::cells::Role;
use super::fault::Clock;
use super::judge::{Counts, Kept, judge};
use super::servers::Programs;
use super::stage::{Found, Stage};
use super::world::{Node, Wanted};
use crate::failure::Failure;

/// By how much.
const OFF_S: i64 = 300;
/// How far the reading of a clock may lie from what it was set to.
const EXACT_S: f64 = 5.0;
/// How long a process may take to read its clock.
const REACH: Duration = Duration::from_mins(1);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(50);

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
    let (mut nodes, mut reached) = (Vec::new(), true);
    for one in [Role::Planner, Role::Worker] {
        let ahead_s = if one == role { ahead_s } else { 0 };
        let node = world.node(Wanted { ahead_s, ..Wanted::of(one) }).await?;
        reached &= is_off(&node, one, ahead_s).await;
        nodes.push(node);
    }
    let since = Instant::now();
    let places = client.send("order r0", threads).await?;
    client.until_rest(&places).await;
    let recovered = since.elapsed();
    let counts = judge(client.journal().as_ref(), &places, &world.effects(), Kept::Whole).await?;
    let mut violations = broken(&counts);
    violations.extend(nodes.iter_mut().filter_map(Node::stray));
    drop(nodes);
    Ok((stage, Found { reached, places, recovered, violations, ..Found::default() }))
}

/// What a wrong clock must not do: end a call that a worker works on, or have one end by itself.
pub(super) fn broken(counts: &Counts) -> Vec<String> {
    let closed = (counts.closed > 0)
        .then(|| format!("{} calls were closed although their worker lives", counts.closed));
    let unbooked = counts.unbooked.iter().map(|(why, count)| {
        format!("{count} orders were not booked although nothing failed ({why})")
    });
    closed.into_iter().chain(unbooked).collect()
}

/// Whether the process itself finds its clock off by so much.
async fn is_off(node: &Node, role: Role, ahead_s: i64) -> bool {
    let series = format!("systole_{role}_clock_ahead_seconds");
    let wanted = i32::try_from(ahead_s).map_or(f64::MAX, f64::from);
    let latest = Instant::now() + REACH;
    while Instant::now() < latest {
        let read = node.metric_now(&series).await;
        if read.is_some_and(|read| (read - wanted).abs() < EXACT_S) {
            return true;
        }
        sleep(LOOK).await;
    }
    false
}

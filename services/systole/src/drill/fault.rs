//! Faults of the servers while planners and workers live.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::cell::Outcome;
use super::cells::Role;
use super::client::Client;
use super::judge::judge;
use super::servers::Programs;
use super::world::World;
use crate::failure::Failure;

/// How long a server is away.
const AWAY: Duration = Duration::from_secs(1);
/// How long the threads may take until the first one books.
const REACH: Duration = Duration::from_secs(20);
/// Consumers of the one stream.
const CONSUMERS: [&str; 4] = ["planner_in", "planner_progress", "tool_look", "tool_book"];

/// What happens to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// kill -9 of NATS, which comes back.
    NatsKilled,
    /// kill -9 of Redis, which comes back empty.
    RedisKilled,
    /// Redis forgets everything.
    RedisWiped,
    /// Every consumer is gone: the stream's history is delivered again.
    ConsumersDeleted,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NatsKilled => "nats/killed/orders",
            Self::RedisKilled => "redis/killed/orders",
            Self::RedisWiped => "redis/wiped/orders",
            Self::ConsumersDeleted => "consumers/deleted/orders",
        })
    }
}

/// All faults, or those whose name holds `only`.
pub(crate) fn all(only: Option<&str>) -> Vec<Fault> {
    let all = [Fault::NatsKilled, Fault::RedisKilled, Fault::RedisWiped, Fault::ConsumersDeleted];
    let all = all.into_iter();
    all.filter(|fault| only.is_none_or(|only| fault.to_string().contains(only))).collect()
}

/// Runs one in a folder of its own, which is removed afterwards unless it went wrong.
pub(crate) async fn run(
    programs: &Programs,
    fault: Fault,
    threads: usize,
    folder: PathBuf,
) -> Result<Outcome, Failure> {
    let world = World::start(programs, folder.clone()).await?;
    let client = Client::connect(&world).await?;
    let nodes = (world.node(Role::Planner, None).await?, world.node(Role::Worker, None).await?);
    let places = client.send("order", threads).await?;
    let reached = until_booked(&world).await;
    let since = Instant::now();
    happen(&world, fault).await?;
    client.until_rest(&places).await;
    let recovered = since.elapsed();
    let counts = judge(client.journal().as_ref(), &places, &world.effects()).await?;
    drop((nodes, world));
    let recovered_ms = u64::try_from(recovered.as_millis()).unwrap_or(u64::MAX);
    let outcome = Outcome { cell: fault.to_string(), reached, threads, counts, recovered_ms };
    if outcome.is_good() {
        std::fs::remove_dir_all(&folder).map_err(|error| Failure::other("the folder", error))?;
    }
    Ok(outcome)
}

/// The middle of the work: the first effect is done, others are not.
async fn until_booked(world: &World) -> bool {
    let latest = Instant::now() + REACH;
    while world.effects().is_empty() {
        if Instant::now() > latest {
            return false;
        }
        sleep(Duration::from_millis(5)).await;
    }
    true
}

async fn happen(world: &World, fault: Fault) -> Result<(), Failure> {
    match fault {
        Fault::NatsKilled => world.nats.crash(AWAY).await,
        Fault::RedisKilled => world.redis.crash(AWAY).await,
        Fault::RedisWiped => world.redis.say("FLUSHALL\r\n", "OK").await,
        Fault::ConsumersDeleted => {
            for consumer in CONSUMERS {
                let ask = format!(
                    "CONNECT {{\"verbose\":false}}\r\nSUB answers 1\r\n\
                     PUB $JS.API.CONSUMER.DELETE.SY_0.{consumer} answers 0\r\n\r\n"
                );
                world.nats.say(&ask, "\"success\":true").await?;
            }
            Ok(())
        }
    }
}

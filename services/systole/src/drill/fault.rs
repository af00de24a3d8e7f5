//! Faults of the servers while planners and workers live.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fmt, io};

use proto::ids::ThreadRef;
use tokio::time::{Instant, sleep, timeout};

use super::cell::Outcome;
use super::cells::Role;
use super::client::Client;
use super::judge::judge;
use super::proxy::Proxy;
use super::servers::Programs;
use super::world::{Node, World};
use crate::failure::Failure;
use crate::follow::fold;

/// How long a server is away.
const AWAY: Duration = Duration::from_secs(1);
/// How long the threads may take until the first one books.
const REACH: Duration = Duration::from_secs(20);
/// How long a planner that was cut off has to do what it must not.
const BACK: Duration = Duration::from_secs(3);
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
    /// NATS comes back with an earlier copy of its store: its newest records are lost, and their
    /// numbers are used again.
    TailLost,
    /// Redis comes back with an earlier copy of its data.
    RedisForgets,
    /// A planner reaches no server while another one takes over, and then comes back.
    PlannerCutOff,
    /// Every consumer is gone: the stream's history is delivered again.
    ConsumersDeleted,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NatsKilled => "nats/killed/orders",
            Self::RedisKilled => "redis/killed/orders",
            Self::RedisWiped => "redis/wiped/orders",
            Self::TailLost => "nats/tail_lost/orders",
            Self::RedisForgets => "redis/forgets/orders",
            Self::PlannerCutOff => "planner/cut_off/orders",
            Self::ConsumersDeleted => "consumers/deleted/orders",
        })
    }
}

/// All faults, or those whose name holds `only`.
pub(crate) fn all(only: Option<&str>) -> Vec<Fault> {
    let all = [
        Fault::NatsKilled,
        Fault::TailLost,
        Fault::RedisKilled,
        Fault::RedisWiped,
        Fault::RedisForgets,
        Fault::PlannerCutOff,
        Fault::ConsumersDeleted,
    ];
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
    let line = Proxy::start(world.nats.port).await?;
    let nodes = (planner(&world, fault, &line).await?, world.node(Role::Worker, None).await?);
    let places = client.send("order", threads).await?;
    let reached = until_booked(&world, 1).await;
    let case = Case { world: &world, client: &client, places: &places, line: &line };
    let reached = reached && case.begin(fault).await?;
    let since = Instant::now();
    let heir = case.happen(fault).await?;
    client.until_rest(&places).await;
    let recovered = since.elapsed();
    if fault == Fault::PlannerCutOff {
        line.cut(false);
        sleep(BACK).await;
    }
    let counts = judge(client.journal().as_ref(), &places, &world.effects()).await?;
    drop((nodes, heir, world));
    // A copy that was as good as the store proves nothing.
    let reached = reached && (fault != Fault::TailLost || counts.restored > 0);
    let recovered_ms = u64::try_from(recovered.as_millis()).unwrap_or(u64::MAX);
    let outcome = Outcome { cell: fault.to_string(), reached, threads, counts, recovered_ms };
    if outcome.is_good() {
        std::fs::remove_dir_all(&folder).map_err(|error| Failure::other("the folder", error))?;
    }
    Ok(outcome)
}

async fn planner(world: &World, fault: Fault, line: &Proxy) -> Result<Node, Failure> {
    match fault {
        Fault::PlannerCutOff => world.planner_behind(line).await,
        Fault::NatsKilled
        | Fault::TailLost
        | Fault::RedisKilled
        | Fault::RedisWiped
        | Fault::RedisForgets
        | Fault::ConsumersDeleted => world.node(Role::Planner, None).await,
    }
}

/// The middle of the work: so many effects are done, others are not.
async fn until_booked(world: &World, effects: usize) -> bool {
    let latest = Instant::now() + REACH;
    while world.effects().len() < effects {
        if Instant::now() > latest {
            return false;
        }
        sleep(Duration::from_millis(5)).await;
    }
    true
}

/// Servers in the middle of the work.
struct Case<'a> {
    world: &'a World,
    client: &'a Client,
    places: &'a [ThreadRef],
    line: &'a Proxy,
}

impl Case<'_> {
    /// What a fault needs before: a copy to come back with, and work that the copy does not know.
    async fn begin(&self, fault: Fault) -> Result<bool, Failure> {
        match fault {
            Fault::TailLost => {
                let (store, copy) = (self.world.nats_store(), self.world.folder.join("earlier"));
                self.world.nats.crash_and(|| copy_folder(&store, &copy)).await?;
                return Ok(self.until_ended().await);
            }
            Fault::RedisForgets => self.world.redis.say("SAVE\r\n", "OK").await?,
            Fault::NatsKilled
            | Fault::RedisKilled
            | Fault::RedisWiped
            | Fault::PlannerCutOff
            | Fault::ConsumersDeleted => return Ok(true),
        }
        Ok(until_booked(self.world, self.places.len() / 2 + 1).await)
    }

    /// Some run has ended, which it had not when its journal was copied: its tool takes longer than
    /// the copy. So the planner knows what the copy does not.
    async fn until_ended(&self) -> bool {
        let ended = async {
            while !self.has_ended().await {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(REACH, ended).await.is_ok()
    }

    async fn has_ended(&self) -> bool {
        for place in self.places {
            // While the bus is away nothing is known to have ended.
            let thread = fold(self.client.journal(), place).await;
            if thread.is_ok_and(|thread| thread.is_at_rest() && thread.runs > 0) {
                return true;
            }
        }
        false
    }

    /// Answers with a process that has to live on, if there is one.
    async fn happen(&self, fault: Fault) -> Result<Option<Node>, Failure> {
        let world = self.world;
        match fault {
            Fault::NatsKilled => world.nats.crash(AWAY).await?,
            Fault::RedisKilled => world.redis.crash(AWAY).await?,
            Fault::RedisForgets => world.redis.crash(Duration::ZERO).await?,
            Fault::RedisWiped => world.redis.say("FLUSHALL\r\n", "OK").await?,
            Fault::TailLost => {
                let (store, copy) = (world.nats_store(), world.folder.join("earlier"));
                let swap = || {
                    std::fs::remove_dir_all(&store).and_then(|()| std::fs::rename(&copy, &store))
                };
                world.nats.crash_and(swap).await?;
            }
            Fault::PlannerCutOff => {
                self.line.cut(true);
                return world.node(Role::Planner, None).await.map(Some);
            }
            Fault::ConsumersDeleted => self.delete_consumers().await?,
        }
        Ok(None)
    }

    async fn delete_consumers(&self) -> Result<(), Failure> {
        for consumer in CONSUMERS {
            let ask = format!(
                "CONNECT {{\"verbose\":false}}\r\nSUB answers 1\r\n\
                 PUB $JS.API.CONSUMER.DELETE.SY_0.{consumer} answers 0\r\n\r\n"
            );
            self.world.nats.say(&ask, "\"success\":true").await?;
        }
        Ok(())
    }
}

fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let place = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &place)?;
        } else {
            std::fs::copy(entry.path(), place)?;
        }
    }
    Ok(())
}

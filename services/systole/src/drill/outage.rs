//! Something happens to a server while threads are under way.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::cell::Load;
use super::cells::Role;
use super::proxy::Proxy;
use super::servers::Programs;
use super::stage::{Found, Stage};
use super::world::{Node, Wanted, World};
use crate::failure::Failure;
use proto::ids::ThreadRef;

/// How long a server is away.
const AWAY: Duration = Duration::from_secs(1);
/// How long the threads may take until the first one books.
const REACH: Duration = Duration::from_mins(1);
/// How long a planner that was cut off has to do what it must not.
const BACK: Duration = Duration::from_secs(3);
/// Consumers of the one stream that orders need.
pub(crate) const CONSUMERS: [&str; 4] =
    ["planner_in", "planner_progress", "tool_look", "tool_book"];

/// What happens to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outage {
    /// kill -9 of NATS, which comes back.
    NatsKilled,
    /// kill -9 of Redis, which comes back empty.
    RedisKilled,
    /// Redis forgets everything.
    RedisWiped,
    /// Redis comes back with an earlier copy of its data.
    RedisForgets,
    /// A planner reaches no server while another one takes over, and then comes back.
    PlannerCutOff,
    /// Every consumer is gone while runs are under way.
    ConsumersDeleted,
}

impl Outage {
    fn kills(self) -> bool {
        matches!(self, Self::NatsKilled | Self::RedisKilled)
    }
}

impl fmt::Display for Outage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NatsKilled => "nats/killed/orders",
            Self::RedisKilled => "redis/killed/orders",
            Self::RedisWiped => "redis/wiped/orders",
            Self::RedisForgets => "redis/forgets/orders",
            Self::PlannerCutOff => "planner/cut_off/orders",
            Self::ConsumersDeleted => "consumers/deleted/orders",
        })
    }
}

/// Runs one; a server is killed again and again, under new threads, until it was killed often enough.
pub(crate) async fn run(
    programs: &Programs,
    outage: Outage,
    load: Load,
    folder: PathBuf,
) -> Result<(Stage, Found), Failure> {
    let stage = Stage::open(programs, folder).await?;
    let line = Proxy::start(stage.world.bus_server()?.port).await?;
    let is_cut = outage == Outage::PlannerCutOff;
    let planner = Wanted { line: is_cut.then_some(line.port), ..Wanted::of(Role::Planner) };
    let nodes =
        (stage.world.node(planner).await?, stage.world.node(Wanted::of(Role::Worker)).await?);
    let rounds = if outage.kills() { load.kills } else { 1 };
    let mut found = Found { reached: true, ..Found::default() };
    for round in 0..rounds {
        let places = stage.client.send(&format!("order r{round}"), load.threads).await?;
        let case = Round { stage: &stage, line: &line, outage };
        let recovered = case.run(&places).await?;
        found.places.extend(places);
        found.reached = recovered.is_some();
        let Some(recovered) = recovered else { break };
        found.recovered = found.recovered.max(recovered);
        found.kills = found.kills.saturating_add(usize::from(outage.kills()));
    }
    drop(nodes);
    Ok((stage, found))
}

/// The middle of the work: so many effects are done, others are not.
pub(crate) async fn until_booked(world: &World, effects: usize) -> bool {
    let latest = Instant::now() + REACH;
    while world.effects().len() < effects {
        if Instant::now() > latest {
            return false;
        }
        sleep(Duration::from_millis(5)).await;
    }
    true
}

struct Round<'a> {
    stage: &'a Stage,
    line: &'a Proxy,
    outage: Outage,
}

impl Round<'_> {
    /// Answers with the time to recover, if it came to the outage.
    async fn run(&self, places: &[ThreadRef]) -> Result<Option<Duration>, Failure> {
        let Stage { world, client, .. } = self.stage;
        let booked = world.effects().len();
        if !until_booked(world, booked.saturating_add(1)).await {
            return Ok(None);
        }
        if self.outage == Outage::RedisForgets {
            world.redis.say("SAVE\r\n", "OK").await?;
            let more = places.len() / 2;
            if !until_booked(world, booked.saturating_add(more).saturating_add(1)).await {
                return Ok(None);
            }
        }
        let since = Instant::now();
        let heir = self.happen().await?;
        client.until_rest(places).await;
        let recovered = since.elapsed();
        if self.outage == Outage::PlannerCutOff {
            self.line.cut(false);
            sleep(BACK).await;
        }
        drop(heir);
        Ok(Some(recovered))
    }

    /// Answers with a process that has to live on, if there is one.
    async fn happen(&self) -> Result<Option<Node>, Failure> {
        let world = &self.stage.world;
        match self.outage {
            Outage::NatsKilled => world.bus_server()?.crash(AWAY).await?,
            Outage::RedisKilled => world.redis.crash(AWAY).await?,
            Outage::RedisForgets => world.redis.crash(Duration::ZERO).await?,
            Outage::RedisWiped => world.redis.say("FLUSHALL\r\n", "OK").await?,
            Outage::PlannerCutOff => {
                self.line.cut(true);
                return world.node(Wanted::of(Role::Planner)).await.map(Some);
            }
            Outage::ConsumersDeleted => delete_consumers(world).await?,
        }
        Ok(None)
    }
}

/// Deletes the consumers of the one stream.
pub(crate) async fn delete_consumers(world: &World) -> Result<(), Failure> {
    for consumer in CONSUMERS {
        let subject = format!("$JS.API.CONSUMER.DELETE.SY_0.{consumer}");
        let answer = world.bus_server()?.ask(&subject, "").await?;
        if answer.get("success").is_none() {
            return Err(Failure::other(consumer, format!("it is not deleted: {answer}")));
        }
    }
    Ok(())
}

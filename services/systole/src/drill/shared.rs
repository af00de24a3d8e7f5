//! What calls of several threads share, while the worker that has it dies: a read that equal calls
//! wait for, and a resource that one mutation at a time holds. And questions to people that wait while
//! every process is replaced.

use std::path::PathBuf;
use std::time::Duration;

use futures_util::future::try_join_all;
use proto::error_code::ErrorCode;
use proto::ids::ThreadRef;
use proto::record::Record;
use tokio::time::{Instant, sleep};

use super::cells::{Hit, Role};
use super::client::LOOK;
use super::judge::history;
use super::people::People;
use super::servers::Programs;
use super::stage::{Found, Stage};
use super::world::{Node, Wanted, World};
use crate::failure::Failure;
use crate::follow::fold;
use crate::nodes::kill::KillPoint as Point;

/// How long the first worker may take to come to its point.
const REACH: Duration = Duration::from_mins(1);

/// The worker that executes a read dies when it is about to hand the result on, or just after; two
/// planners and another worker are there, and every thread is answered.
pub(crate) async fn reads(
    programs: &Programs,
    point: Point,
    threads: usize,
    folder: PathBuf,
) -> Result<(Stage, Found), Failure> {
    let stage = Stage::open(programs, folder).await?;
    let cast = Cast::assemble(&stage.world, point).await?;
    let places = stage.client.send("peek r0", threads).await?;
    let (reached, since, heir) = cast.replaced(&stage.world, "peeks.log").await?;
    stage.client.until_rest(&places).await;
    let recovered = since.elapsed();
    let mut violations = Vec::new();
    let executions = stage.world.lines("peeks.log").len();
    // The one that died may have to be repeated; never once for each thread.
    let most = if point == Point::BeforeShared { 2 } else { 1 };
    if executions > most {
        violations.push(format!("{threads} equal reads were executed {executions} times"));
    }
    for place in &places {
        let told = answers(&stage, place).await?;
        if told != ["ok: gate is shut"] {
            violations.push(format!("{}: the read was answered with {told:?}", place.thread));
        }
    }
    drop(heir);
    let kills = usize::from(reached);
    Ok((stage, Found { reached, kills, places, recovered, violations, ..Found::default() }))
}

/// The worker that holds a resource dies when it is about to take it, or just after, and working memory
/// is wiped: no two mutations ever run at once.
pub(crate) async fn resource(
    programs: &Programs,
    point: Point,
    threads: usize,
    folder: PathBuf,
) -> Result<(Stage, Found), Failure> {
    let stage = Stage::open(programs, folder).await?;
    let cast = Cast::assemble(&stage.world, point).await?;
    let more = stage.world.node(Wanted::of(Role::Worker)).await?;
    let places = stage.client.send("turn r0", threads).await?;
    let (reached, since, heir) = cast.replaced(&stage.world, "effects.log").await?;
    stage.world.redis.say("FLUSHALL\r\n", "OK").await?;
    stage.client.until_rest(&places).await;
    let recovered = since.elapsed();
    let overlaps = stage.world.lines("overlaps.log");
    let mut violations: Vec<String> =
        overlaps.iter().map(|order| format!("{order} was turned while another one was")).collect();
    for place in &places {
        for told in answers(&stage, place).await? {
            if !told.starts_with("ok: turned") && !told.starts_with("conflict") {
                violations.push(format!("{}: the turn was answered with {told:?}", place.thread));
            }
        }
    }
    drop((heir, more));
    let kills = usize::from(reached);
    Ok((stage, Found { reached, kills, places, recovered, violations, ..Found::default() }))
}

/// Every planner, worker and gateway is killed while each thread asks a person; the words are said to
/// those that come after, in reverse order and twice.
pub(crate) async fn approvals(
    programs: &Programs,
    threads: usize,
    folder: PathBuf,
) -> Result<(Stage, Found), Failure> {
    let stage = Stage::open(programs, folder).await?;
    let (world, client) = (&stage.world, &stage.client);
    let before = staff(world).await?;
    let places = client.send("sign r0", threads).await?;
    let mut waiting = 0_usize;
    let latest = Instant::now() + REACH;
    while waiting < places.len() && Instant::now() < latest {
        sleep(LOOK).await;
        waiting = 0;
        for place in &places {
            let thread = fold(client.journal(), place).await?;
            waiting += usize::from(thread.open_calls().any(|call| call.asked.is_some()));
        }
    }
    let kills = before.len();
    drop(before);
    let since = Instant::now();
    world.bus_server()?.crash(Duration::from_secs(1)).await?;
    let after = staff(world).await?;
    let people =
        People::new(after.iter().filter(|node| node.role == Role::Gateway).map(|n| &n.node))?;
    let reversed: Vec<ThreadRef> = places.iter().rev().cloned().collect();
    people.agree(client, &reversed).await?;
    people.agree_again(client, &places).await?;
    client.until_rest(&places).await;
    let (reached, recovered) = (waiting == places.len(), since.elapsed());
    drop(after);
    Ok((stage, Found { reached, kills, places, recovered, ..Found::default() }))
}

/// A process with what it is.
struct Employee {
    role: Role,
    node: Node,
}

async fn staff(world: &World) -> Result<Vec<Employee>, Failure> {
    let starting = [Role::Planner, Role::Worker, Role::Gateway].map(|role| async move {
        Ok::<Employee, Failure>(Employee { role, node: world.node(Wanted::of(role)).await? })
    });
    try_join_all(starting).await
}

/// Two planners, and a worker that dies at its point.
struct Cast {
    _planners: (Node, Node),
    worker: Node,
    point: Point,
}

impl Cast {
    async fn assemble(world: &World, point: Point) -> Result<Self, Failure> {
        let arming = Some(point.as_str().to_owned());
        let worker = world.node(Wanted { arming, ..Wanted::of(Role::Worker) }).await?;
        let planner = || world.node(Wanted::of(Role::Planner));
        Ok(Self { _planners: (planner().await?, planner().await?), worker, point })
    }

    /// Waits until the worker is at it, starts another one, and waits for the end of the first; answers
    /// whether it came to its point, and when.
    async fn replaced(
        mut self,
        world: &World,
        file: &str,
    ) -> Result<(bool, Instant, (Cast, Node)), Failure> {
        let latest = Instant::now() + REACH;
        while world.lines(file).is_empty() && !self.worker.is_gone() && Instant::now() < latest {
            sleep(LOOK).await;
        }
        let heir = world.node(Wanted::of(Role::Worker)).await?;
        while !self.worker.is_gone() && Instant::now() < latest {
            sleep(LOOK).await;
        }
        let reached = self.worker.is_hit(self.point, Hit::Killed);
        Ok((reached, Instant::now(), (self, heir)))
    }
}

/// What the calls of a thread were answered with by workers.
async fn answers(stage: &Stage, place: &ThreadRef) -> Result<Vec<String>, Failure> {
    let records = history(stage.client.journal().as_ref(), place).await?;
    let told = records.into_iter().filter_map(|placed| {
        let Record::Observation(seen) = placed.record else { return None };
        let code = seen.code.map_or("ok", ErrorCode::as_str);
        Some(format!("{code}: {}", seen.content.trim()))
    });
    Ok(told.collect())
}

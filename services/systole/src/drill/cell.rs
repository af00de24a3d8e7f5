//! One cell: processes of one role that are hit at one point, and another that takes over. A cell is
//! repeated in rounds over the same servers until enough processes were ended.

use std::path::PathBuf;
use std::time::Duration;

use proto::ids::ThreadRef;
use proto::input::InputBody;
use tokio::time::{Instant, sleep};

use super::after::Ends;
use super::cells::{Cell, Hit, Role, Story};
use super::people::People;
use super::servers::Programs;
use super::stage::{Found, Outcome, Stage};
use super::world::{self, Node, Wanted};
use crate::failure::Failure;
use crate::follow::fold;

/// How long the first process may take to come to its point.
const REACH: Duration = Duration::from_mins(1);
/// How much longer the others may take that are to be hit in the same round.
const OTHERS: Duration = Duration::from_millis(500);
/// How long a process that stood still has to do what it must not.
const AFTERWARDS: Duration = Duration::from_secs(3);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(50);
/// Processes that are hit in one round, at most.
const ABREAST: usize = 10;

/// Runs a cell in a folder of its own, which is removed afterwards unless it went wrong. A cell that
/// kills is repeated until `kills` processes were ended.
pub(crate) async fn run(
    programs: &Programs,
    cell: Cell,
    load: Load,
    folder: PathBuf,
) -> Result<Outcome, Failure> {
    if cell.story == Story::Servers {
        world::with_server(&folder)?;
    }
    let stage = Stage::open(programs, folder).await?;
    let mut found = Found::default();
    let wanted = if cell.hit == Hit::Killed { load.kills } else { 1 };
    // Each round hits one process at least, or the point is not reached at all.
    for round in 0..wanted {
        let abreast = wanted.saturating_sub(found.kills).clamp(1, ABREAST);
        let next = Round { stage: &stage, cell, round, threads: load.threads };
        let came = Box::pin(next.run(abreast)).await?;
        found.kills = found.kills.saturating_add(came.hits);
        found.recovered = found.recovered.max(came.recovered);
        found.places.extend(came.places);
        found.violations.extend(came.violations);
        if came.hits == 0 || found.kills >= wanted {
            break;
        }
    }
    found.reached = found.kills >= wanted;
    if cell.hit == Hit::Paused {
        found.kills = 0;
    }
    stage.close(cell.to_string(), found).await
}

/// How much is under way, and how often a process is ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Threads of one round.
    pub(crate) threads: usize,
    /// Processes that a row ends at least.
    pub(crate) kills: usize,
    /// Model requests that are open when the leader of a cluster is killed.
    pub(crate) turns: usize,
}

struct Round<'a> {
    stage: &'a Stage,
    cell: Cell,
    round: usize,
    threads: usize,
}

/// What came of a round.
struct Came {
    hits: usize,
    places: Vec<ThreadRef>,
    recovered: Duration,
    violations: Vec<String>,
}

/// The processes that are hit, and those of other roles.
struct Cast {
    hit: Vec<Node>,
    others: Vec<(Role, Node)>,
}

impl Round<'_> {
    async fn run(&self, abreast: usize) -> Result<Came, Failure> {
        let mut cast = self.assemble(abreast).await?;
        let people = self.people(&cast)?;
        let (places, replaced) =
            tokio::join!(self.errands(&people), self.replace(&mut cast.hit, &people));
        let (places, (since, mut heir)) = (places?, replaced?);
        self.stage.client.until_rest(&places).await;
        let recovered = since.elapsed();
        let hits = self.hits(&mut cast.hit);
        let mut violations = self.afterwards(&mut cast, &places).await?;
        violations.extend(self.strays(&mut cast, &mut heir));
        drop((heir, cast));
        Ok(Came { hits, places, recovered, violations })
    }

    /// While threads are cancelled no worker is there, so that their calls have not started; the
    /// tools of one that is gone are on offer for a while.
    async fn assemble(&self, abreast: usize) -> Result<Cast, Failure> {
        let world = &self.stage.world;
        let role = self.cell.role;
        let mut others = Vec::new();
        for other in [Role::Worker, Role::Planner, Role::Gateway] {
            let is_needed = other != Role::Gateway || self.cell.story == Story::Signatures;
            if other != role && is_needed {
                others.push((other, world.node(Wanted::of(other)).await?));
            }
        }
        if self.cancels() {
            others.clear();
        }
        let armed = Wanted { arming: Some(self.cell.arming()), ..Wanted::of(role) };
        let starting = (0..abreast).map(|_| world.node(armed.clone()));
        let hit = futures_util::future::try_join_all(starting).await?;
        Ok(Cast { hit, others })
    }

    /// People speak to gateways: to those that are hit, or to the one beside them.
    fn people(&self, cast: &Cast) -> Result<People, Failure> {
        if self.cell.role == Role::Gateway {
            return People::new(cast.hit.iter());
        }
        let gateways = cast.others.iter().filter(|(role, _)| *role == Role::Gateway);
        People::new(gateways.map(|(_, node)| node))
    }

    /// What threads are begun for, up to the last word that a person has to say.
    async fn errands(&self, people: &People) -> Result<Vec<ThreadRef>, Failure> {
        let client = &self.stage.client;
        let name = |word: &str| format!("{word} r{}", self.round);
        match self.cell.story {
            Story::Orders if self.cell.role == Role::Gateway => {
                people.order(&name("order"), self.threads).await
            }
            Story::Orders => client.send(&name("order"), self.threads).await,
            Story::Bookings => client.send(&name("hold"), self.threads).await,
            Story::Servers => client.send(&name("pin"), self.threads).await,
            Story::Cancels => {
                let places = client.send(&name("hold"), self.threads).await?;
                self.cancel(&places).await?;
                Ok(places)
            }
            Story::Signatures => {
                let places = client.send(&name("sign"), self.threads).await?;
                people.agree(client, &places).await?;
                Ok(places)
            }
            Story::Poison => {
                let places = client.send(&name("order"), self.threads).await?;
                for place in &places {
                    self.stage.world.poison(place).await?;
                }
                Ok(places)
            }
        }
    }

    /// Waits for the hits, and starts whoever takes over; answers with the time of the first.
    async fn replace(&self, hit: &mut [Node], people: &People) -> Result<(Instant, Node), Failure> {
        let latest = Instant::now() + REACH;
        while self.hits(hit) == 0 && Instant::now() < latest {
            sleep(LOOK / 10).await;
        }
        let since = Instant::now();
        while self.hits(hit) < hit.len() && since.elapsed() < OTHERS {
            sleep(LOOK / 10).await;
        }
        let heir = self.stage.world.node(Wanted::of(self.cell.role)).await?;
        if self.cell.role == Role::Gateway {
            people.turn_to(&heir);
        }
        Ok((since, heir))
    }

    fn hits(&self, nodes: &mut [Node]) -> usize {
        let Cell { point, hit, .. } = self.cell;
        nodes.iter_mut().filter_map(|node| node.is_hit(point, hit).then_some(())).count()
    }

    /// Processes that ended although nobody asked for it: their end is no kill, and it breaks the row.
    fn strays(&self, cast: &mut Cast, heir: &mut Node) -> Vec<String> {
        let Cell { point, .. } = self.cell;
        let hit = cast
            .hit
            .iter_mut()
            .filter_map(|node| if node.is_hit(point, Hit::Killed) { None } else { node.stray() });
        let mut strays: Vec<String> = hit.collect();
        strays.extend(cast.others.iter_mut().filter_map(|(_, node)| node.stray()));
        strays.extend(heir.stray());
        strays
    }

    /// Whoever stood still goes on, and a worker comes when everything is over: neither may do
    /// anything any more.
    async fn afterwards(
        &self,
        cast: &mut Cast,
        places: &[ThreadRef],
    ) -> Result<Vec<String>, Failure> {
        let ends = Ends::of(&self.stage.client, places).await?;
        if self.cell.hit == Hit::Paused {
            for node in &cast.hit {
                node.resume()?;
            }
            sleep(AFTERWARDS).await;
        }
        if self.cancels() {
            cast.others.push((Role::Worker, self.late_worker(places.len()).await?));
        }
        ends.altered(&self.stage.client).await
    }

    fn cancels(&self) -> bool {
        self.cell.story == Story::Cancels
    }

    /// Cancels every thread once all their calls are out.
    async fn cancel(&self, places: &[ThreadRef]) -> Result<(), Failure> {
        let latest = Instant::now() + REACH;
        for place in places {
            while Instant::now() < latest {
                let thread = fold(self.stage.client.journal(), place).await?;
                if thread.open_calls().any(|call| call.dispatched.is_some()) {
                    break;
                }
                sleep(LOOK).await;
            }
        }
        for place in places {
            let body = InputBody::Cancel { reason: "the drill".to_owned() };
            self.stage.client.input(place, body).await?;
        }
        Ok(())
    }

    /// A worker that comes when everything is over sees each call and starts none.
    async fn late_worker(&self, calls: usize) -> Result<Node, Failure> {
        let worker = self.stage.world.node(Wanted::of(Role::Worker)).await?;
        let latest = Instant::now() + REACH;
        let wanted = u32::try_from(calls).map_or(f64::MAX, f64::from);
        while worker.metric("systole_worker_deliveries_total").await < wanted {
            if Instant::now() > latest {
                break;
            }
            sleep(LOOK).await;
        }
        sleep(Duration::from_millis(500)).await;
        Ok(worker)
    }
}

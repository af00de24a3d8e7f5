//! One cell: its own servers, one process that is hit, another that takes over.

use std::path::PathBuf;
use std::time::Duration;

use proto::ids::ThreadRef;
use proto::input::InputBody;
use serde::Serialize;
use tokio::time::{Instant, sleep};

use super::cells::{Cell, Hit, Role, Story};
use super::client::Client;
use super::judge::{Counts, judge};
use super::servers::Programs;
use super::world::{Node, World};
use crate::failure::Failure;
use crate::follow::fold;

/// How long the process may take to come to its point.
const REACH: Duration = Duration::from_secs(20);
/// How long a process that stood still has to do what it must not.
const AFTERWARDS: Duration = Duration::from_secs(3);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(50);

/// What came of a cell.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Outcome {
    /// Its name.
    pub(crate) cell: String,
    /// Whether the process came to the point.
    pub(crate) reached: bool,
    /// Threads under way.
    pub(crate) threads: usize,
    /// What was counted.
    #[serde(flatten)]
    pub(crate) counts: Counts,
    /// From the hit until every run had ended.
    pub(crate) recovered_ms: u64,
}

impl Outcome {
    /// Whether the cell proves what it should.
    pub(crate) fn is_good(&self) -> bool {
        self.reached && self.counts.keeps_promises()
    }
}

/// Runs a cell in a folder of its own, which is removed afterwards unless it went wrong.
pub(crate) async fn run(
    programs: &Programs,
    cell: Cell,
    threads: usize,
    folder: PathBuf,
) -> Result<Outcome, Failure> {
    let world = World::start(programs, folder.clone()).await?;
    let client = Client::connect(&world).await?;
    let case = Case { world: &world, client, cell };
    let outcome = case.run(threads).await?;
    drop(world);
    if outcome.is_good() {
        std::fs::remove_dir_all(&folder).map_err(|error| Failure::other("the folder", error))?;
    }
    Ok(outcome)
}

struct Case<'a> {
    world: &'a World,
    client: Client,
    cell: Cell,
}

/// The process that is hit, and the one of the other role.
struct Cast {
    hit: Node,
    other: Option<Node>,
}

impl Case<'_> {
    async fn run(&self, threads: usize) -> Result<Outcome, Failure> {
        let mut cast = self.assemble().await?;
        let places = self.begin(threads).await?;
        let reached = self.until_hit(&mut cast.hit).await;
        let since = Instant::now();
        let heir = self.world.node(self.cell.role, None).await?;
        self.client.until_rest(&places).await;
        let recovered = since.elapsed();
        self.afterwards(&mut cast, places.len()).await?;
        let counts = judge(self.client.journal().as_ref(), &places, &self.world.effects()).await?;
        drop((heir, cast));
        Ok(Outcome {
            cell: self.cell.to_string(),
            reached,
            threads,
            counts,
            recovered_ms: u64::try_from(recovered.as_millis()).unwrap_or(u64::MAX),
        })
    }

    /// While threads are cancelled no worker is there, so that their calls have not started; the
    /// tools of one that is gone are on offer for a while.
    async fn assemble(&self) -> Result<Cast, Failure> {
        if self.cancels() {
            drop(self.world.node(Role::Worker, None).await?);
        }
        let hit = self.world.node(self.cell.role, Some(&self.cell.arming())).await?;
        let other =
            if self.cancels() { None } else { Some(self.world.node(self.other(), None).await?) };
        Ok(Cast { hit, other })
    }

    async fn begin(&self, threads: usize) -> Result<Vec<ThreadRef>, Failure> {
        let word = match self.cell.story {
            Story::Orders => "order",
            Story::Bookings | Story::Cancels => "hold",
        };
        let places = self.client.send(word, threads).await?;
        if self.cancels() {
            self.cancel(&places).await?;
        }
        Ok(places)
    }

    /// Whoever stood still goes on, and a worker comes when everything is over: neither may do
    /// anything any more.
    async fn afterwards(&self, cast: &mut Cast, calls: usize) -> Result<(), Failure> {
        if self.cell.hit == Hit::Paused {
            cast.hit.resume()?;
            sleep(AFTERWARDS).await;
        }
        if self.cancels() {
            cast.other = Some(self.late_worker(calls).await?);
        }
        Ok(())
    }

    fn cancels(&self) -> bool {
        self.cell.story == Story::Cancels
    }

    fn other(&self) -> Role {
        match self.cell.role {
            Role::Planner => Role::Worker,
            Role::Worker => Role::Planner,
        }
    }

    /// Cancels every thread once all their calls are out.
    async fn cancel(&self, places: &[ThreadRef]) -> Result<(), Failure> {
        let latest = Instant::now() + REACH;
        for place in places {
            while Instant::now() < latest {
                let thread = fold(self.client.journal(), place).await?;
                if thread.open_calls().any(|call| call.dispatched.is_some()) {
                    break;
                }
                sleep(LOOK).await;
            }
        }
        for place in places {
            let body = InputBody::Cancel { reason: "the drill".to_owned() };
            self.client.input(place, body).await?;
        }
        Ok(())
    }

    async fn until_hit(&self, hit: &mut Node) -> bool {
        let latest = Instant::now() + REACH;
        loop {
            let is_hit = match self.cell.hit {
                Hit::Killed => hit.is_gone(),
                Hit::Paused => hit.is_stopped(),
            };
            if is_hit || Instant::now() > latest {
                return is_hit;
            }
            sleep(LOOK / 10).await;
        }
    }

    /// A worker that comes when everything is over sees each call and starts none.
    async fn late_worker(&self, calls: usize) -> Result<Node, Failure> {
        let worker = self.world.node(Role::Worker, None).await?;
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

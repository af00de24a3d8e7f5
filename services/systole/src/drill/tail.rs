//! The journal loses its tail: NATS comes back with an earlier copy of its store.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proto::ids::ThreadRef;
use tokio::time::{Instant, sleep, timeout};

use super::cells::Role;
use super::judge::{Kept, judge};
use super::outage::until_booked;
use super::servers::Programs;
use super::stage::{Found, Stage};
use super::world::{Node, Wanted};
use crate::failure::Failure;
use crate::follow::fold;
use crate::nodes::kill::KillPoint as Point;

/// How long anything may take until the copy comes back.
const REACH: Duration = Duration::from_mins(1);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(5);

/// What becomes of the planner that knows what was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Restorer {
    Lives,
    /// It ends around the record that restores a thread; another one finds what it knew in Redis.
    Killed(Point),
}

/// Lets the tail be lost in the middle of the work. When the planner is to end too, everything that
/// it knew has come to Redis before: what is in neither is lost, and nobody promises otherwise.
pub(crate) async fn tail_lost(
    programs: &Programs,
    restorer: Restorer,
    threads: usize,
    folder: PathBuf,
) -> Result<(Stage, Found), Failure> {
    let stage = Stage::open(programs, folder).await?;
    let arming = match restorer {
        Restorer::Lives => None,
        Restorer::Killed(point) => Some(point.as_str().to_owned()),
    };
    let planner = Wanted { arming, ..Wanted::of(Role::Planner) };
    let mut planner = stage.world.node(planner).await?;
    let worker = stage.world.node(Wanted::of(Role::Worker)).await?;
    let places = stage.client.send("order r0", threads).await?;
    let loss = Loss { stage: &stage, places: &places, restorer };
    let is_ready = loss.prepare().await?;
    let since = Instant::now();
    loss.swap().await?;
    let heir = loss.replace(&mut planner).await?;
    stage.client.until_rest(&places).await;
    let recovered = since.elapsed();
    // A copy that was as good as the store proves nothing.
    let reached = is_ready && heir.is_some() == loss.kills() && loss.is_restored().await?;
    let kills = usize::from(heir.is_some());
    drop((planner, worker, heir));
    Ok((
        stage,
        Found { reached, kills, places, recovered, kept: Kept::WithoutTail, ..Found::default() },
    ))
}

async fn until_gone(node: &mut Node) -> bool {
    let latest = Instant::now() + REACH;
    while !node.is_gone() {
        if Instant::now() > latest {
            return false;
        }
        sleep(LOOK).await;
    }
    true
}

struct Loss<'a> {
    stage: &'a Stage,
    places: &'a [ThreadRef],
    restorer: Restorer,
}

impl Loss<'_> {
    fn kills(&self) -> bool {
        self.restorer != Restorer::Lives
    }

    /// A copy to come back with, and work that the copy does not know.
    async fn prepare(&self) -> Result<bool, Failure> {
        let is_booked = until_booked(&self.stage.world, 1).await;
        self.copy().await?;
        let is_known =
            if self.kills() { self.until_kept().await? } else { self.until_ended().await };
        Ok(is_booked && is_known)
    }

    /// Whoever takes over from a planner that is gone.
    async fn replace(&self, planner: &mut Node) -> Result<Option<Node>, Failure> {
        if !self.kills() || !until_gone(planner).await {
            return Ok(None);
        }
        self.stage.world.node(Wanted::of(Role::Planner)).await.map(Some)
    }

    fn folders(&self) -> (PathBuf, PathBuf) {
        let world = &self.stage.world;
        (world.nats_store(), world.folder.join("earlier"))
    }

    async fn copy(&self) -> Result<(), Failure> {
        let (store, copy) = self.folders();
        self.stage.world.bus_server()?.crash_and(|| copy_folder(&store, &copy)).await
    }

    async fn swap(&self) -> Result<(), Failure> {
        let (store, copy) = self.folders();
        let swap = || std::fs::remove_dir_all(&store).and_then(|()| std::fs::rename(&copy, &store));
        self.stage.world.bus_server()?.crash_and(swap).await
    }

    /// Some run has ended, which it had not when its journal was copied: its tool takes longer than
    /// the copy. So the planner knows what the copy does not.
    async fn until_ended(&self) -> bool {
        let ended = async {
            while !self.has_ended().await {
                sleep(LOOK).await;
            }
        };
        timeout(REACH, ended).await.is_ok()
    }

    async fn has_ended(&self) -> bool {
        for place in self.places {
            // While the bus is away nothing is known to have ended.
            let thread = fold(self.stage.client.journal(), place).await;
            if thread.is_ok_and(|thread| thread.is_at_rest() && thread.runs > 0) {
                return true;
            }
        }
        false
    }

    /// Every run has ended, and Redis has each thread as it is.
    async fn until_kept(&self) -> Result<bool, Failure> {
        let client = &self.stage.client;
        client.until_rest(self.places).await;
        let latest = Instant::now() + REACH;
        for place in self.places {
            loop {
                let head = fold(client.journal(), place).await?.head.sequence;
                let kept = client.working().snapshot(place).await?;
                if kept.is_some_and(|kept| kept.sequence >= head) {
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

    async fn is_restored(&self) -> Result<bool, Failure> {
        let journal = self.stage.client.journal().as_ref();
        Ok(judge(journal, self.places, &[], Kept::WithoutTail).await?.restored > 0)
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

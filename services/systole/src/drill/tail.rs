//! The journal loses its tail: NATS comes back with an earlier copy of its store.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proto::ids::ThreadRef;
use tokio::time::{Instant, sleep, timeout};

use super::cell::Load;
use super::cells::{Hit, Role};
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
/// How much longer other planners may take that are to end in the same round.
const OTHERS: Duration = Duration::from_millis(500);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(5);

/// What becomes of the planner that knows what was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Restorer {
    Lives,
    /// It ends around the record that restores a thread; another one finds what it knew in Redis.
    Killed(Point),
}

/// Planners that end in one round, at most.
const ABREAST: usize = 5;

/// Lets the tail be lost in the middle of the work. When the planners are to end too, everything that
/// they knew has come to Redis before: what is in neither is lost, and nobody promises otherwise. Then
/// it is lost again and again, under new threads, until enough of them were ended.
pub(crate) async fn tail_lost(
    programs: &Programs,
    restorer: Restorer,
    load: Load,
    folder: PathBuf,
) -> Result<(Stage, Found), Failure> {
    let stage = Stage::open(programs, folder).await?;
    let worker = stage.world.node(Wanted::of(Role::Worker)).await?;
    let mut found = Found { reached: true, kept: Kept::WithoutTail, ..Found::default() };
    for round in 0.. {
        let abreast = load.kills.saturating_sub(found.kills).clamp(1, ABREAST);
        let came = lose(&stage, restorer, (round, abreast), load.threads).await?;
        found.kills = found.kills.saturating_add(came.kills);
        found.recovered = found.recovered.max(came.recovered);
        found.reached &= came.reached;
        found.places.extend(came.places);
        if !came.reached || restorer == Restorer::Lives || found.kills >= load.kills {
            break;
        }
    }
    drop(worker);
    Ok((stage, found))
}

/// Loses the tail once.
async fn lose(
    stage: &Stage,
    restorer: Restorer,
    (round, abreast): (usize, usize),
    threads: usize,
) -> Result<Found, Failure> {
    let (arming, planners) = match restorer {
        Restorer::Lives => (None, 1),
        Restorer::Killed(point) => (Some(point.as_str().to_owned()), abreast),
    };
    let wanted = Wanted { arming, ..Wanted::of(Role::Planner) };
    let starting = (0..planners).map(|_| stage.world.node(wanted.clone()));
    let mut planners = futures_util::future::try_join_all(starting).await?;
    let booked = stage.world.effects().len();
    let places = stage.client.send(&format!("order r{round}"), threads).await?;
    let loss = Loss { stage, places: &places, restorer };
    let is_ready = loss.prepare(booked).await?;
    let since = Instant::now();
    loss.swap().await?;
    let heir = loss.replace(&mut planners).await?;
    stage.client.until_rest(&places).await;
    let recovered = since.elapsed();
    let kills = loss.hits(&mut planners);
    // A copy that was as good as the store proves nothing.
    let reached = is_ready && (kills > 0) == loss.kills() && loss.is_restored().await?;
    drop((planners, heir));
    Ok(Found { reached, kills, places, recovered, ..Found::default() })
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
    async fn prepare(&self, booked: usize) -> Result<bool, Failure> {
        let is_booked = until_booked(&self.stage.world, booked.saturating_add(1)).await;
        self.copy().await?;
        let is_known =
            if self.kills() { self.until_kept().await? } else { self.until_ended().await };
        Ok(is_booked && is_known)
    }

    /// Whoever takes over once the first planner is gone, and others have had a while to follow.
    async fn replace(&self, planners: &mut [Node]) -> Result<Option<Node>, Failure> {
        if !self.kills() {
            return Ok(None);
        }
        let latest = Instant::now() + REACH;
        while self.hits(planners) == 0 && Instant::now() < latest {
            sleep(LOOK).await;
        }
        let latest = Instant::now() + OTHERS;
        while self.hits(planners) < planners.len() && Instant::now() < latest {
            sleep(LOOK).await;
        }
        self.stage.world.node(Wanted::of(Role::Planner)).await.map(Some)
    }

    fn hits(&self, planners: &mut [Node]) -> usize {
        let Restorer::Killed(point) = self.restorer else { return 0 };
        let is_hit = |node: &mut Node| node.is_hit(point, Hit::Killed);
        planners.iter_mut().filter_map(|node| is_hit(node).then_some(())).count()
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

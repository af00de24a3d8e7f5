//! A worker takes calls, keeps their deliveries alive and never answers.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use service_runtime::tasks::TaskSet;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use super::cells::Role;
use super::servers::Programs;
use super::stage::{Found, Stage};
use super::wire::Wire;
use super::world::{Wanted, World};
use crate::failure::Failure;

/// How long a worker may take to make its queues.
const REACH: Duration = Duration::from_mins(1);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(50);
/// Between two signs of life: less than what a silent process may take.
const ALIVE: Duration = Duration::from_millis(500);

/// Runs orders while somebody else takes looks from their queue, which the planner closes at their
/// deadline: nobody else may take them, because they are held.
pub(crate) async fn silent(
    programs: &Programs,
    threads: usize,
    folder: PathBuf,
) -> Result<(Stage, Found), Failure> {
    let stage = Stage::open(programs, folder).await?;
    let Stage { world, client, .. } = &stage;
    let planner = world.node(Wanted::of(Role::Planner)).await?;
    let worker = world.node(Wanted::of(Role::Worker)).await?;
    until_there(world).await?;
    let silent = Silent::start(world.bus_server()?.port, threads).await?;
    let since = Instant::now();
    let places = client.send("order r0", threads).await?;
    client.until_rest(&places).await;
    let recovered = since.elapsed();
    let reached = silent.held.load(Ordering::Relaxed) > 0;
    drop((planner, worker, silent));
    Ok((stage, Found { reached, places, recovered, ..Found::default() }))
}

/// The worker has made its queue: a request for what does not exist is answered at once, for ever.
async fn until_there(world: &World) -> Result<(), Failure> {
    let latest = Instant::now() + REACH;
    while Instant::now() < latest {
        let info = world.bus_server()?.ask("$JS.API.CONSUMER.INFO.SY_0.tool_look", "").await?;
        if info.get("error").is_none() {
            return Ok(());
        }
        sleep(LOOK).await;
    }
    Err(Failure::other("a worker of the drill", "it has not made the queue of its tool"))
}

struct Silent {
    held: Arc<AtomicU64>,
    _tasks: TaskSet,
}

impl Silent {
    /// Takes so many calls at most, each with a request of its own.
    async fn start(port: u16, most: usize) -> Result<Self, Failure> {
        let failed = |error: io::Error| Failure::other("a client of the drill", error);
        let mut wire = Wire::connect(port).await.map_err(failed)?;
        wire.say("SUB silent 1\r\n").await.map_err(failed)?;
        for _ in 0..most {
            let ask = "{\"batch\":1,\"expires\":60000000000}";
            let next = "$JS.API.CONSUMER.MSG.NEXT.SY_0.tool_look";
            let words = format!("PUB {next} silent {}\r\n{ask}\r\n", ask.len());
            wire.say(&words).await.map_err(failed)?;
        }
        let speaking = Wire::connect(port).await.map_err(failed)?;
        let held = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&held);
        let mut tasks = TaskSet::new();
        tasks.start("silent", async move {
            if let Err(error) = hold(wire, speaking, &counted).await {
                tracing::warn!(%error, "calls are not held any more");
            }
        });
        Ok(Self { held, _tasks: tasks })
    }
}

/// Hears on one connection and speaks on the other: neither waits for the other.
async fn hold(mut hearing: Wire, mut speaking: Wire, held: &AtomicU64) -> io::Result<()> {
    let deliveries = Mutex::new(Vec::new());
    let hear = async {
        loop {
            let delivery = hearing.delivery().await?;
            deliveries.lock().await.push(delivery);
            held.fetch_add(1, Ordering::Relaxed);
        }
    };
    let speak = async {
        loop {
            sleep(ALIVE).await;
            for delivery in deliveries.lock().await.iter() {
                speaking.say(&format!("PUB {delivery} 4\r\n+WPI\r\n")).await?;
            }
        }
    };
    tokio::select! {
        ended = hear => ended,
        ended = speak => ended,
    }
}

//! Every delivery is handed out a second time, to whoever pulls next, while the first is being worked
//! on: somebody else on the bus hands it back.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use service_runtime::tasks::TaskSet;
use tokio::time::Instant;

use super::cells::Role;
use super::judge::{Counts, Kept, judge};
use super::servers::Programs;
use super::stage::{Found, Stage};
use super::wire::{Wire, delivery_count};
use super::world::{Node, Wanted};
use crate::failure::Failure;

/// Runs orders on two planners and two workers, between which every delivery is handed out twice.
pub(crate) async fn twice(
    programs: &Programs,
    threads: usize,
    folder: PathBuf,
) -> Result<(Stage, Found), Failure> {
    let stage = Stage::open(programs, folder).await?;
    let Stage { world, client, .. } = &stage;
    let intruder = Intruder::start(world.bus_server()?.port).await?;
    let mut nodes = Vec::new();
    for role in [Role::Planner, Role::Planner, Role::Worker, Role::Worker] {
        nodes.push(world.node(Wanted::of(role)).await?);
    }
    let since = Instant::now();
    let places = client.send("order r0", threads).await?;
    client.until_rest(&places).await;
    let recovered = since.elapsed();
    // An input, two calls, two results of each thread.
    let least = u64::try_from(threads.saturating_mul(3)).unwrap_or(u64::MAX);
    let reached = intruder.again.load(Ordering::Relaxed) >= least;
    let counts = judge(client.journal().as_ref(), &places, &world.effects(), Kept::Whole).await?;
    let mut takeovers = 0.0;
    for node in &nodes {
        takeovers += node.metric("systole_planner_takeovers_total").await;
    }
    let mut violations = broken(&counts, takeovers);
    violations.extend(nodes.iter_mut().filter_map(Node::stray));
    drop((nodes, intruder));
    Ok((stage, Found { reached, places, recovered, violations, ..Found::default() }))
}

/// Whoever gets a delivery of a turn that another one works on asks that one. A turn is begun again
/// only when its owner did not answer in time, which the one that takes over counts.
pub(super) fn broken(counts: &Counts, takeovers: f64) -> Vec<String> {
    let repeated = counts.model_calls_repeated;
    let is_explained = u32::try_from(repeated).is_ok_and(|count| f64::from(count) <= takeovers);
    let why = || format!("{repeated} model calls were repeated although both planners live");
    (!is_explained).then(why).into_iter().collect()
}

/// Hears every delivery and hands back each that was delivered once.
struct Intruder {
    /// Deliveries that came a second time.
    again: Arc<AtomicU64>,
    _tasks: TaskSet,
}

impl Intruder {
    async fn start(port: u16) -> Result<Self, Failure> {
        let failed = |error: io::Error| Failure::other("a client of the drill", error);
        let mut wire = Wire::connect(port).await.map_err(failed)?;
        wire.say("SUB _INBOX.> 1\r\n").await.map_err(failed)?;
        let again = Arc::new(AtomicU64::new(0));
        let mut tasks = TaskSet::new();
        let counted = Arc::clone(&again);
        tasks.start("intruder", async move {
            if let Err(error) = intrude(wire, &counted).await {
                tracing::warn!(%error, "deliveries are not handed out twice any more");
            }
        });
        Ok(Self { again, _tasks: tasks })
    }
}

async fn intrude(mut wire: Wire, again: &AtomicU64) -> io::Result<()> {
    loop {
        let delivery = wire.delivery().await?;
        match delivery_count(&delivery) {
            Some(1) => wire.say(&format!("PUB {delivery} 4\r\n-NAK\r\n")).await?,
            Some(_) => {
                again.fetch_add(1, Ordering::Relaxed);
            }
            None => {}
        }
    }
}

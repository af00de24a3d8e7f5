//! A worker of another language is killed while its tools are under way, again and again, and another one
//! of its kind takes over. It is started by the command in the variable `SYSTOLE_DRILL_WORKER`, serves the
//! drill's tools over NATS alone and writes its effects where the drill counts them.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::time::Instant;

use super::cell::Load;
use super::cells::Role;
use super::outage::until_booked;
use super::servers::Programs;
use super::stage::{Found, Stage};
use super::world::{Wanted, World, nats_url};
use crate::failure::Failure;

/// Rounds at most: each waits for the moment at which nobody can be at a call any more.
const ROUNDS: usize = 10;

/// Each thread books at once, which must not happen twice.
pub(crate) async fn killed(
    programs: &Programs,
    load: Load,
    folder: PathBuf,
) -> Result<(Stage, Found), Failure> {
    let stage = Stage::open(programs, folder).await?;
    let Stage { world, client, .. } = &stage;
    let planner = world.node(Wanted::of(Role::Planner)).await?;
    let rounds = load.kills.min(ROUNDS);
    let mut found = Found::default();
    let mut worker = start(programs, world)?;
    for round in 0..rounds {
        let before = world.effects().len();
        let places = client.send(&format!("hold r{round}"), load.threads).await?;
        let is_under_way = until_booked(world, before.saturating_add(1)).await;
        let since = Instant::now();
        end(&mut worker).await?;
        worker = start(programs, world)?;
        client.until_rest(&places).await;
        found.recovered = found.recovered.max(since.elapsed());
        found.places.extend(places);
        if !is_under_way {
            break;
        }
        found.kills = found.kills.saturating_add(1);
    }
    found.reached = found.kills >= rounds;
    drop((planner, worker));
    Ok((stage, found))
}

fn start(programs: &Programs, world: &World) -> Result<Child, Failure> {
    let failed = |error: std::io::Error| Failure::other("the worker of another language", error);
    let Some((program, words)) = programs.worker.split_first() else {
        return Err(Failure::not_found("SYSTOLE_DRILL_WORKER names no command"));
    };
    let log = world.folder.join("other.log");
    let log = std::fs::File::options().create(true).append(true).open(log).map_err(failed)?;
    let mut command = Command::new(program);
    command.args(words).current_dir(&world.folder).stdin(Stdio::null()).kill_on_drop(true);
    command.stdout(log.try_clone().map_err(failed)?).stderr(log);
    command.env("SYSTOLE_NATS", nats_url(world.bus_server()?.port));
    command.env("SYSTOLE_ACK_WAIT_S", super::world::ACK_WAIT.as_secs().to_string());
    command.spawn().map_err(failed)
}

/// kill -9; gone when this answers.
async fn end(worker: &mut Child) -> Result<(), Failure> {
    let killed = tokio::time::timeout(Duration::from_secs(10), worker.kill()).await;
    killed
        .map_err(std::io::Error::other)
        .and_then(|killed| killed)
        .map_err(|error| Failure::other("the worker of another language", error))
}

//! `up` and `down`: what `docker-compose.yml` says, from programs of this machine.
//!
//! In reading order: [`compose`] (the file), [`plan`] (commands), [`translate`] (their words made true
//! here), [`programs`] (what stands for an image), [`health`], [`ledger`] (what runs), [`ports`].

pub(crate) mod compose;
mod health;
mod ledger;
mod plan;
mod ports;
mod programs;
mod translate;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, bail};
use clap::Args;

use crate::house::House;
use crate::process::{Stopwatch, setting};
use crate::{complain, say};
use compose::Compose;
use ledger::Ledger;
use plan::{Places, Plan, Start};

/// The file.
pub(crate) const FILE: &str = "docker-compose.yml";
/// How many lines of a log are shown when a service does not come up.
const TAIL: usize = 20;
/// What a process sees of the surroundings; the rest is the file's.
const SURROUNDINGS: [&str; 4] = ["PATH", "HOME", "TMPDIR", "LANG"];

/// What `up` may be told.
#[derive(Debug, Args)]
pub(crate) struct UpArgs {
    /// Added to every port of the file
    #[arg(long, default_value_t = 0)]
    port_offset: u16,
    /// Where data, logs and the list of processes lie; `up` under the target folder without it
    #[arg(long)]
    folder: Option<PathBuf>,
    /// A program that is built already
    #[arg(long)]
    systole: Option<PathBuf>,
}

/// What `down` may be told.
#[derive(Debug, Args)]
pub(crate) struct DownArgs {
    /// The folder that `up` was given
    #[arg(long)]
    folder: Option<PathBuf>,
}

fn folder(house: &House, given: Option<&PathBuf>) -> PathBuf {
    given.cloned().unwrap_or_else(|| house.scratch("up"))
}

/// Starts everything and waits until it is well. What does not come up takes the rest with it.
pub(crate) fn up(house: &House, args: &UpArgs) -> Result<()> {
    let watch = Stopwatch::start();
    let folder = folder(house, args.folder.as_ref());
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let folder = folder.canonicalize()?;
    let mut ledger = Ledger::open(&folder)?;
    if let Some(running) = ledger.alive().first() {
        bail!("{} runs already (pid {}): `cargo xtask down` first", running.service, running.pid);
    }
    ledger.all.clear();
    let text = fs::read_to_string(house.root.join(FILE)).context(FILE)?;
    let compose = Compose::parse(&text)?;
    let places = Places { root: &house.root, up: &folder, offset: args.port_offset };
    let plan = plan::plan(&compose, places)?;
    let programs = programs(house, &plan, args.systole.as_deref())?;
    free(&plan, &programs)?;
    prepare(&plan, &folder)?;
    if let Err(error) = start_all(&plan, &programs, &folder, &mut ledger) {
        ledger.stop()?;
        return Err(error);
    }
    say(&format!("up: all is well after {:.1} s", watch.elapsed().as_secs_f64()));
    say(&format!("up: logs and data lie in {}; `cargo xtask down` stops it", folder.display()));
    Ok(())
}

/// Stops everything, gently first; data and logs stay.
pub(crate) fn down(house: &House, args: &DownArgs) -> Result<()> {
    let mut ledger = Ledger::open(&folder(house, args.folder.as_ref()))?;
    if ledger.all.is_empty() {
        say("down: nothing runs");
    }
    ledger.stop()
}

/// The program of each service; one that may be absent and is has none.
fn programs(
    house: &House,
    plan: &Plan,
    systole: Option<&Path>,
) -> Result<BTreeMap<String, PathBuf>> {
    let mut found: BTreeMap<String, Option<PathBuf>> = BTreeMap::new();
    let mut programs = BTreeMap::new();
    for Start { service, image, .. } in plan.levels.iter().flatten() {
        if !found.contains_key(image) {
            found.insert(image.clone(), programs::find(house, image, systole)?);
        }
        match found.get(image).cloned().flatten() {
            Some(program) => drop(programs.insert(service.clone(), program)),
            None => say(&format!("up: {service} is left out: this machine has no {image}")),
        }
    }
    Ok(programs)
}

/// Every port is free, or all that are not are named.
fn free(plan: &Plan, programs: &BTreeMap<String, PathBuf>) -> Result<()> {
    let wanted = plan.levels.iter().flatten().filter(|start| programs.contains_key(&start.service));
    let ports =
        wanted.flat_map(|start| start.ports.iter().map(move |port| (&start.service, *port)));
    let taken: Vec<String> = ports
        .filter_map(|(service, port)| {
            let holder = ports::holder(port)?;
            Some(format!("port {port} of {service} is taken by {holder}"))
        })
        .collect();
    if taken.is_empty() {
        return Ok(());
    }
    bail!("{}; stop it, or choose other ports with --port-offset N", taken.join("; "))
}

fn prepare(plan: &Plan, folder: &Path) -> Result<()> {
    let logs = folder.join("logs");
    for made in plan.folders.iter().chain([&logs]) {
        fs::create_dir_all(made).with_context(|| made.display().to_string())?;
    }
    for (copy, translation) in &plan.copies {
        let text =
            fs::read_to_string(&copy.from).with_context(|| copy.from.display().to_string())?;
        let lines = text.lines().map(|line| translation.word(line) + "\n");
        if let Some(parent) = copy.to.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&copy.to, lines.collect::<String>()).context("a file of a service")?;
    }
    Ok(())
}

fn start_all(
    plan: &Plan,
    programs: &BTreeMap<String, PathBuf>,
    folder: &Path,
    ledger: &mut Ledger,
) -> Result<()> {
    for level in &plan.levels {
        let mut started = Vec::new();
        for start in level {
            let Some(program) = programs.get(&start.service) else { continue };
            let log = log(folder, &start.service);
            let child = spawn(start, program, &log)?;
            ledger.add(&start.service, child.id(), start.grace).with_context(|| tail(&log))?;
            started.push((start, child));
        }
        for (start, mut child) in started {
            let well = health::wait(&start.service, &start.health, &mut child);
            well.with_context(|| tail(&log(folder, &start.service)))?;
            say(&format!("up: {} is well {}", start.service, shown(&start.ports)));
        }
    }
    Ok(())
}

fn shown(ports: &[u16]) -> String {
    ports.iter().map(|port| format!("127.0.0.1:{port}")).collect::<Vec<_>>().join(" ")
}

fn log(folder: &Path, service: &str) -> PathBuf {
    folder.join("logs").join(format!("{service}.log"))
}

/// A group of its own: an interrupt of the terminal ends `up`, not what it started.
fn spawn(start: &Start, program: &Path, log: &Path) -> Result<Child> {
    let output = fs::File::create(log).with_context(|| log.display().to_string())?;
    let mut command = Command::new(program);
    command.args(&start.args).env_clear();
    let surroundings = SURROUNDINGS.iter().filter_map(|name| Some((name, setting(name)?)));
    command.envs(surroundings).envs(&start.environment);
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output).process_group(0);
    command.spawn().with_context(|| format!("{} cannot be started", program.display()))
}

/// The end of a log, for an error.
fn tail(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_else(|error| {
        complain(&format!("{}: {error}", log.display()));
        String::new()
    });
    let lines: Vec<&str> = text.lines().collect();
    let last = lines.get(lines.len().saturating_sub(TAIL)..).unwrap_or_default();
    format!("the end of {}:\n{}\n", log.display(), last.join("\n"))
}

//! The command line and the order of `check`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::{Args, Parser, Subcommand};

use crate::house::House;
use crate::process::Stopwatch;
use crate::up::{DownArgs, UpArgs};
use crate::{
    mutants, real_model, say, servers, setup, simulate, steps, streams, tidy, up, workers,
};

#[derive(Debug, Parser)]
#[command(
    name = "xtask",
    bin_name = "cargo xtask",
    about = "The project's own chores",
    disable_version_flag = true
)]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Debug, Subcommand)]
enum Chore {
    /// Check the formatting of the whole workspace
    Fmt(Write),
    /// Clippy on every target, warnings denied
    Lint,
    /// Every test: unit, integration, system and documentation tests
    Test(TestArgs),
    /// Seeded worlds with faults; every invariant after every event
    Simulate(SimulateArgs),
    /// Serve recorded streams over real HTTP and check what the client makes of each
    Streams(StreamsArgs),
    /// Feed the reader of streams with mutated recordings: no panic, no hang, no lost end
    Fuzz(FuzzArgs),
    /// Hold workers against proto/PROTOCOL.md: one that `-- CMD` starts, or our own in three languages
    WorkerConformance(WorkerArgs),
    /// Both ready agents once against a real, tiny model behind llama.cpp's server
    RealModel,
    /// Rules that no other tool knows: crate edges, sizes, purity, generated files
    Tidy(Write),
    /// Licences, sources, banned and duplicate crates, unused dependencies
    Deny,
    /// Documentation of the workspace, warnings denied
    Docs,
    /// Spelling
    Typos,
    /// Start what docker-compose.yml says from programs of this machine
    Up(UpArgs),
    /// Stop what `up` started
    Down(DownArgs),
    /// Install what the other commands need under the target folder
    Setup,
    /// What CI runs, in its order
    Check,
}

#[derive(Debug, Args)]
struct Write {
    /// Repair what can be repaired
    #[arg(long)]
    write: bool,
}

#[derive(Debug, Args)]
struct TestArgs {
    /// Passed on to the test runner, for example a part of a test's name
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

#[derive(Debug, Args)]
struct SimulateArgs {
    /// How many worlds
    #[arg(long, default_value_t = simulate::SEEDS)]
    seeds: u64,
    /// Replay one world
    #[arg(long, conflicts_with = "mutants")]
    seed: Option<u64>,
    /// Plant the known bugs instead: each must be found
    #[arg(long)]
    mutants: bool,
}

#[derive(Debug, Args)]
struct StreamsArgs {
    /// A folder with `index.json` and bodies; without one the repository's own
    folder: Option<PathBuf>,
    /// Only cases whose id holds one of these
    parts: Vec<String>,
}

#[derive(Debug, Args)]
struct FuzzArgs {
    /// How long
    #[arg(long, default_value_t = streams::FUZZ_SECONDS)]
    seconds: u64,
}

#[derive(Debug, Args)]
struct WorkerArgs {
    /// Only rules whose id holds one of these, separated by commas
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Name the rules
    #[arg(long)]
    list: bool,
    /// Start workers that break one rule each instead: each must be found
    #[arg(long, conflicts_with = "command")]
    wrong: bool,
    /// What starts the worker
    #[arg(last = true)]
    command: Vec<String>,
}

/// Runs the chore that the arguments name.
pub fn main(args: impl IntoIterator<Item = OsString>) -> Result<()> {
    let cli = Cli::parse_from(args);
    let house = House::find()?;
    match cli.chore {
        Chore::Fmt(Write { write }) => steps::fmt(&house, write),
        Chore::Lint => steps::lint(&house),
        Chore::Test(TestArgs { rest }) => steps::test(&house, &rest),
        Chore::Simulate(args) if args.mutants => mutants::hunt(&house),
        Chore::Simulate(args) => simulate::run(&house, args.seeds, args.seed),
        Chore::Streams(StreamsArgs { folder, parts }) => {
            streams::run(&house, folder.as_deref(), &parts)
        }
        Chore::Fuzz(FuzzArgs { seconds }) => streams::fuzz(&house, seconds),
        Chore::WorkerConformance(WorkerArgs { only, list, wrong, command }) => {
            workers::run(&house, &workers::Asked { only, wrong, list, command })
        }
        Chore::RealModel => real_model::run(&house),
        Chore::Tidy(Write { write: true }) => tidy::write(&house),
        Chore::Tidy(Write { write: false }) => tidy::check(&house),
        Chore::Deny => steps::deny(&house),
        Chore::Docs => steps::docs(&house),
        Chore::Typos => steps::typos(&house),
        Chore::Up(args) => up::up(&house, &args),
        Chore::Down(args) => up::down(&house, &args),
        Chore::Setup => {
            servers::setup(&house);
            workers::find_or_skip(&house)?;
            setup::run(&house)
        }
        Chore::Check => check(&house),
    }
}

type Step = (&'static str, fn(&House) -> Result<()>);

/// Cheap verdicts first. The tests are the last to run a test runner, so that its closing line
/// is the last of its kind.
const CHECK: [Step; 13] = [
    ("fmt", |house| steps::fmt(house, false)),
    ("tidy", tidy::check),
    ("typos", steps::typos),
    ("deny", steps::deny),
    ("lint", steps::lint),
    ("docs", steps::docs),
    ("streams", |house| streams::run(house, None, &[])),
    ("fuzz", |house| streams::fuzz(house, streams::FUZZ_SECONDS)),
    ("worker-conformance", workers::check),
    ("worker-conformance --wrong", workers::hunt),
    ("test", |house| steps::test(house, &[])),
    ("simulate", |house| simulate::run(house, simulate::SEEDS, None)),
    ("simulate --mutants", mutants::hunt),
];

fn check(house: &House) -> Result<()> {
    let mut times = Vec::new();
    for (name, step) in CHECK {
        say(&format!("=== {name}"));
        let watch = Stopwatch::start();
        step(house).with_context(|| format!("check stopped at step `{name}`"))?;
        times.push((name, watch.elapsed()));
    }
    for (name, time) in &times {
        say(&format!("{name:<20} {:>7.1} s", time.as_secs_f64()));
    }
    let total: Duration = times.iter().map(|(_, time)| *time).sum();
    say(&format!("{:<20} {:>7.1} s", "check passed in", total.as_secs_f64()));
    Ok(())
}

//! `simulation`: runs many seeded worlds, or replays one.

use std::process::ExitCode;

use clap::Parser;
use simulation::branches;
use simulation::campaign::{Campaign, replay, run};

/// Seeded worlds of planners and workers, judged after every record.
#[derive(Parser)]
struct Arguments {
    /// How many worlds.
    #[arg(long, default_value_t = 1_000)]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    start: u64,
    /// Replays one world and tells its story.
    #[arg(long)]
    seed: Option<u64>,
    /// Goes on after a broken rule and lists every seed that breaks one.
    #[arg(long)]
    keep_going: bool,
    /// Worlds at the same time.
    #[arg(long, default_value_t = 2)]
    threads: usize,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    branches::listen(arguments.seed.is_some());
    match arguments.seed {
        Some(seed) => replay(seed),
        None => run(Campaign {
            seeds: arguments.seeds,
            start: arguments.start,
            keep_going: arguments.keep_going,
            threads: arguments.threads,
        }),
    }
}

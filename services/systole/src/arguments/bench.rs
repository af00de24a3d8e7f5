//! `bench` and its parts.

use clap::{Args, Subcommand};

/// `systole bench`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  systole bench --quick\n  systole bench --json")]
pub(crate) struct Bench {
    /// Takes a few seconds; the numbers are rough.
    #[arg(long)]
    pub(crate) quick: bool,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `systole bench-model`.
#[derive(Debug, Args)]
pub(crate) struct BenchModel {
    /// Its port; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    pub(crate) port: u16,
}

/// `systole bench-part`.
#[derive(Debug, Subcommand)]
pub(crate) enum BenchPart {
    /// Many threads at once.
    Throughput {
        /// The model.
        #[arg(long)]
        url: String,
        /// How long threads begin.
        #[arg(long)]
        span_ms: u64,
        /// Leaves out the syncs.
        #[arg(long)]
        unsynced: bool,
    },
    /// A bare program with the same work.
    Floor {
        /// The model.
        #[arg(long)]
        url: String,
        /// How long runs begin.
        #[arg(long)]
        span_ms: u64,
    },
    /// One thread.
    Overhead {
        /// The model.
        #[arg(long)]
        url: String,
        /// Runs.
        #[arg(long)]
        runs: usize,
    },
    /// Threads that wait.
    Memory {
        /// The model.
        #[arg(long)]
        url: String,
        /// How many.
        #[arg(long)]
        threads: usize,
    },
    /// Words, calls, words.
    Early {
        /// The model.
        #[arg(long)]
        url: String,
        /// Which calls go out early.
        #[arg(long)]
        early_dispatch: String,
        /// Words per second.
        #[arg(long)]
        pace: u32,
    },
}

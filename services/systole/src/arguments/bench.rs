//! `bench` and its parts.

use clap::{Args, Subcommand, ValueEnum};

/// `systole bench`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  systole bench --quick\n  systole bench --only memory\n  \
                        systole bench --json\n  systole bench --distributed\n  \
                        systole bench --distributed --only streams")]
pub(crate) struct Bench {
    /// Takes a few seconds; the numbers are rough.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Over NATS and Redis, which it starts and ends itself, with planners and workers as processes.
    #[arg(long)]
    pub(crate) distributed: bool,
    /// Measures only these parts.
    #[arg(long, value_delimiter = ',', value_name = "PART,…")]
    pub(crate) only: Vec<Measured>,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A part of the bench.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Measured {
    /// Tool calls a second, beside a bare program and what the disk syncs.
    Throughput,
    /// What a turn takes beyond its model.
    Overhead,
    /// From the start of a process to its first request to the model.
    ColdStart,
    /// What calls that go out early save.
    EarlyDispatch,
    /// Threads that wait for the model.
    Memory,
    /// Replies that stream at once: the one part that `--distributed` has by itself.
    Streams,
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
        #[arg(long, value_parser = clap::value_parser!(u64).range(1..=600_000))]
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
        #[arg(long, value_parser = clap::value_parser!(u64).range(1..=600_000))]
        span_ms: u64,
    },
    /// One thread.
    Overhead {
        /// The model.
        #[arg(long)]
        url: String,
        /// Runs.
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        runs: u32,
    },
    /// Threads that wait.
    Memory {
        /// The model.
        #[arg(long)]
        url: String,
        /// How many.
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        threads: u32,
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
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        pace: u32,
    },
    /// The floor over JetStream.
    Bare {
        /// The server.
        #[arg(long)]
        nats: String,
        /// Its streams.
        #[arg(long)]
        partitions: u16,
        /// The model.
        #[arg(long)]
        url: String,
        /// Runs at once.
        #[arg(long)]
        threads: usize,
        /// How long runs begin.
        #[arg(long)]
        span_ms: u64,
    },
    /// The floor's other process.
    BareWorker {
        /// The server.
        #[arg(long)]
        nats: String,
        /// Its streams.
        #[arg(long)]
        partitions: u16,
    },
    /// A worker with the bench's tools.
    Worker {
        #[command(flatten)]
        servers: BenchServers,
        /// Calls that it works on at once.
        #[arg(long, default_value_t = 256)]
        slots: usize,
    },
    /// Many runs over servers.
    Fleet {
        #[command(flatten)]
        servers: BenchServers,
        /// Runs at once.
        #[arg(long)]
        threads: usize,
        /// How long runs begin.
        #[arg(long)]
        span_ms: u64,
        /// Watches calls too.
        #[arg(long)]
        calls: bool,
    },
    /// Runs that wait for the model.
    Waiting {
        #[command(flatten)]
        servers: BenchServers,
        /// The model.
        #[arg(long)]
        url: String,
        /// How many.
        #[arg(long)]
        threads: usize,
        /// Inputs a second.
        #[arg(long)]
        per_second: u32,
    },
    /// Replies that stream, heard by readers.
    Talking {
        #[command(flatten)]
        servers: BenchServers,
        /// The model.
        #[arg(long)]
        url: String,
        /// How many.
        #[arg(long)]
        threads: usize,
        /// Chunks a second of each.
        #[arg(long)]
        pace: u32,
        /// How long it is measured.
        #[arg(long)]
        span_ms: u64,
        /// Processes whose processor time counts.
        #[arg(long, value_name = "NAME=ID", value_parser = process)]
        process: Vec<(String, u32)>,
    },
    /// As many silent replies, held by a program that does nothing else.
    Streams {
        /// The model.
        #[arg(long)]
        url: String,
        /// Its name.
        #[arg(long)]
        model: String,
        /// How many.
        #[arg(long)]
        threads: usize,
    },
}

/// The servers of a part.
#[derive(Debug, Args)]
pub(crate) struct BenchServers {
    /// NATS.
    #[arg(long)]
    pub(crate) nats: String,
    /// Redis.
    #[arg(long)]
    pub(crate) redis: String,
    /// Streams.
    #[arg(long)]
    pub(crate) partitions: u16,
}

fn process(text: &str) -> Result<(String, u32), String> {
    let parts = text.split_once('=').and_then(|(name, id)| Some((name, id.parse().ok()?)));
    parts.map(|(name, id)| (name.to_owned(), id)).ok_or_else(|| "write NAME=ID".to_owned())
}

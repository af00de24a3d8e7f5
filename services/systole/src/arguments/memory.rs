//! `memory`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use proto::agent::Edition;
use proto::ids::{TenantId, ThreadId};

/// Long-term memory.
#[derive(Debug, Subcommand)]
pub(crate) enum Memory {
    /// Lists what is remembered.
    #[command(after_help = "Example:\n  systole memory list --thread 01J8ZQ6V4N2W6Q0R3S5T7U9W1X")]
    List(MemoryList),
    /// Finds what fits a question, the way a run does when it begins.
    #[command(after_help = "Example:\n  systole memory find \"which cluster is staging?\"")]
    Find(MemoryFind),
    /// Shows one memory, with the turns around it.
    #[command(after_help = "Example:\n  systole memory show 01J8ZQ6V4N2W6Q0R3S5T7U9W1X/4.0")]
    Show(MemoryOne),
    /// Tells where a memory is from, why it counts as much as it does, and whether it still holds.
    #[command(after_help = "Example:\n  systole memory why 01J8ZQ6V4N2W6Q0R3S5T7U9W1X/4.0")]
    Why(MemoryOne),
    /// Writes all that is remembered, one JSON object a line.
    #[command(after_help = "Example:\n  systole memory export > memory.jsonl")]
    Export(MemoryPlace),
    /// Removes threads, subjects, memories or versions of documents from every tier, and proves it.
    #[command(
        after_help = "Examples:\n  systole memory forget --thread 01J8ZQ6V4N2W6Q0R3S5T7U9W1X\n  systole memory forget --subject \"Anna Berg\"\n  systole memory forget --edition handbook@1"
    )]
    Forget(MemoryForget),
    /// Takes documents in as a version of a collection: Markdown, text, HTML, JSON lines.
    #[command(
        after_help = "Example:\n  systole memory ingest docs/ --collection handbook --version 2"
    )]
    Ingest(MemoryIngest),
    /// Measures how well memory does on conversations with questions, as JSON lines; docs/memory.md has
    /// the format. No model judges.
    #[command(
        after_help = "Examples:\n  systole memory eval conversations.jsonl\n  systole memory eval --generate 20 --seed 1"
    )]
    Eval(MemoryEval),
    /// Makes vectors anew, after another embedder was chosen.
    #[command(after_help = "Example:\n  systole memory reindex")]
    Reindex(MemoryPlace),
}

impl Memory {
    /// Whether it prints for programs.
    pub(crate) fn wants_json(&self) -> bool {
        match self {
            Self::List(MemoryList { place, .. })
            | Self::Find(MemoryFind { place, .. })
            | Self::Show(MemoryOne { place, .. })
            | Self::Why(MemoryOne { place, .. })
            | Self::Forget(MemoryForget { place, .. })
            | Self::Ingest(MemoryIngest { place, .. })
            | Self::Export(place)
            | Self::Reindex(place) => place.json,
            Self::Eval(asked) => asked.json,
        }
    }
}

/// Which memory.
#[derive(Clone, Debug, Args)]
pub(crate) struct MemoryPlace {
    /// Whose memory; a store has one tenant.
    #[arg(long = "of", value_name = "TENANT", default_value = "default")]
    pub(crate) tenant: TenantId,
    /// As JSON, one object a line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `systole memory list`.
#[derive(Debug, Args)]
pub(crate) struct MemoryList {
    /// Only what this thread said.
    #[arg(long, value_name = "ID")]
    pub(crate) thread: Option<ThreadId>,
    /// At most so many.
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: usize,
    /// Where.
    #[command(flatten)]
    pub(crate) place: MemoryPlace,
}

/// `systole memory find`.
#[derive(Debug, Args)]
pub(crate) struct MemoryFind {
    /// The question.
    pub(crate) question: String,
    /// Documents that are looked at too, such as `handbook@2`; may be given several times.
    #[arg(long, value_name = "NAME@VERSION", value_parser = edition)]
    pub(crate) edition: Vec<Edition>,
    /// At most so many.
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub(crate) limit: usize,
    /// Where.
    #[command(flatten)]
    pub(crate) place: MemoryPlace,
}

/// `systole memory show` and `systole memory why`.
#[derive(Debug, Args)]
pub(crate) struct MemoryOne {
    /// Its id, as `list` shows it.
    pub(crate) id: String,
    /// Where.
    #[command(flatten)]
    pub(crate) place: MemoryPlace,
}

/// `systole memory forget`.
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("what").required(true)))]
pub(crate) struct MemoryForget {
    /// A thread: its records, results, state, and what is remembered of it.
    #[arg(long, value_name = "ID", group = "what")]
    pub(crate) thread: Option<ThreadId>,
    /// Facts about somebody or something, and every thread that names it.
    #[arg(long, value_name = "NAME", group = "what")]
    pub(crate) subject: Option<String>,
    /// All threads and memories of the tenant.
    #[arg(long, group = "what")]
    pub(crate) all: bool,
    /// One memory, by its id; its thread stays.
    #[arg(long, value_name = "ID", group = "what")]
    pub(crate) id: Option<String>,
    /// A version of a collection of documents, such as `handbook@1`.
    #[arg(long, value_name = "NAME@VERSION", value_parser = edition, group = "what")]
    pub(crate) edition: Option<Edition>,
    /// Where.
    #[command(flatten)]
    pub(crate) place: MemoryPlace,
}

/// `systole memory ingest`.
#[derive(Debug, Args)]
pub(crate) struct MemoryIngest {
    /// Files or folders.
    #[arg(required = true, value_name = "FILE|DIR")]
    pub(crate) paths: Vec<PathBuf>,
    /// The collection.
    #[arg(long, value_name = "NAME")]
    pub(crate) collection: String,
    /// The version.
    #[arg(long, value_name = "VERSION")]
    pub(crate) version: String,
    /// Where.
    #[command(flatten)]
    pub(crate) place: MemoryPlace,
}

/// `systole memory eval`.
#[derive(Debug, Args)]
pub(crate) struct MemoryEval {
    /// Conversations and questions as JSON lines; `-` is standard input. Without a file, some are made.
    #[arg(value_name = "FILE", conflicts_with = "generate")]
    pub(crate) file: Option<PathBuf>,
    /// Makes so many conversations.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) generate: Option<u64>,
    /// Which ones: the same seed makes the same.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Prints the conversations and measures nothing.
    #[arg(long)]
    pub(crate) lines: bool,
    /// As one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

fn edition(text: &str) -> Result<Edition, String> {
    let rule = "a collection with its version, such as handbook@2";
    Edition::parse(text).ok_or_else(|| format!("expected {rule}"))
}

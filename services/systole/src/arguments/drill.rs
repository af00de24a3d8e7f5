//! `systole drill`.

use std::path::PathBuf;

use clap::Args;

/// `systole drill`.
#[derive(Debug, Args)]
pub(crate) struct Drill {
    /// Three threads and one kill in each cell in place of twenty and a hundred.
    #[arg(long)]
    pub(crate) short: bool,
    /// Only cells whose name holds this, such as `worker/` or `before_ack`.
    #[arg(long, value_name = "PART")]
    pub(crate) only: Option<String>,
    /// How many threads are under way in each round of a cell.
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
    /// How many processes a cell ends at least, in as many rounds as that takes.
    #[arg(long, value_name = "N")]
    pub(crate) kills: Option<usize>,
    /// Cells at once, each with its own servers.
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(crate) jobs: usize,
    /// Writes `crash-matrix.md` and `crash-matrix.json` into this folder.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) write: Option<PathBuf>,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

//! `tools`.

use std::path::PathBuf;

use clap::Subcommand;

/// `systole tools`.
#[derive(Debug, Subcommand)]
pub(crate) enum Tools {
    /// Checks tool files, agent files and rehearsals, and gives advice.
    Check {
        /// The files.
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
}

//! `tools`.

use std::path::PathBuf;

use clap::Subcommand;

/// `systole tools`.
#[derive(Debug, Subcommand)]
pub(crate) enum Tools {
    /// Lists tools: name, what repeating does, limit, approval, description.
    #[command(after_help = "Example:\n  systole tools list agents/ops/tools.yaml")]
    List {
        /// Agents' files, tool files, or folders that hold agents; without any, as for `dev`.
        #[arg(value_name = "FILE")]
        files: Vec<PathBuf>,
        /// As JSON, one tool a line.
        #[arg(long)]
        json: bool,
    },
    /// Checks tool files, agent files and rehearsals, and gives advice.
    #[command(
        after_help = "Example:\n  systole tools check agents/ops/tools.yaml agents/ops/agent.yaml"
    )]
    Check {
        /// The files.
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
}

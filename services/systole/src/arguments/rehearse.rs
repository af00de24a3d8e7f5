//! `rehearse`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `systole rehearse`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:\n  systole rehearse agents/ops/agent.yaml\n  systole rehearse agents/ops/agent.yaml --case healthy\n  systole rehearse serve agents/ops/rehearsal.yaml"
)]
pub(crate) struct Rehearse {
    /// Something else.
    #[command(subcommand)]
    pub(crate) task: Option<RehearseTask>,
    /// The agent's file; or a rehearsal, which the agent beside it plays.
    #[arg(required = true)]
    pub(crate) agent: Option<PathBuf>,
    /// Files with cases. Without any: the agent's rehearsal and the folder `rehearsals` beside it.
    pub(crate) files: Vec<PathBuf>,
    /// Only cases whose name contains this.
    #[arg(long, value_name = "PART")]
    pub(crate) case: Option<String>,
    /// As JSON, one case a line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What else is done with rehearsals.
#[derive(Debug, Subcommand)]
pub(crate) enum RehearseTask {
    /// Serves a rehearsal as an OpenAI-compatible endpoint.
    Serve {
        /// The rehearsal.
        file: PathBuf,
        /// Where; port 0 takes a free one.
        #[arg(
            long,
            env = "SYSTOLE_LISTEN",
            value_name = "ADDRESS",
            default_value = "127.0.0.1:7079"
        )]
        listen: std::net::SocketAddr,
        /// How slowly it speaks: 1 as written, 0 without pauses.
        #[arg(
            long,
            env = "SYSTOLE_REHEARSAL_PACE",
            value_name = "FACTOR",
            default_value_t = 1.0,
            value_parser = super::run::pace,
            hide = true
        )]
        pace: f64,
    },
}

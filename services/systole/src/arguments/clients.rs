//! `systole send`, `systole tail`: clients of a distributed deployment.

use clap::Args;
use proto::ids::{AgentName, InputKey, ThreadId, ToolName};

use super::nodes::BusFlags;

/// `systole send`.
#[derive(Debug, Args)]
pub(crate) struct Send {
    /// What to do, in your words; `-` reads standard input.
    pub(crate) text: String,
    /// Who answers; a thread that goes on keeps its agent.
    #[arg(long, value_name = "NAME", required_unless_present = "thread")]
    pub(crate) agent: Option<AgentName>,
    /// Adds to this thread.
    #[arg(long, value_name = "ID")]
    pub(crate) thread: Option<ThreadId>,
    /// The same key in the same thread is the same input, however often it is sent.
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<InputKey>,
    /// Approves every call of this tool; may be given several times.
    #[arg(long, value_name = "TOOL")]
    pub(crate) approve: Vec<ToolName>,
    /// How hard the task is, 1 to 5; sets the turn limit.
    #[arg(long, value_name = "1-5", value_parser = clap::value_parser!(u32).range(1..=5))]
    pub(crate) complexity: Option<u32>,
    /// Shows the thread until its run is over.
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Prints one event per line, as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// The servers.
    #[command(flatten)]
    pub(crate) bus: BusFlags,
}

/// `systole tail`.
#[derive(Debug, Args)]
pub(crate) struct Tail {
    /// A thread's id, the end of one, or `last`.
    pub(crate) thread: String,
    /// Prints one event per line, as JSON; the last one is `run_finished`.
    #[arg(long)]
    pub(crate) json: bool,
    /// The servers.
    #[command(flatten)]
    pub(crate) bus: BusFlags,
}

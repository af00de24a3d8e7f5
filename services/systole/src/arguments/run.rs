//! `run`, and which model answers.

use std::path::PathBuf;

use clap::Args;
use proto::ids::{ThreadId, ToolName};

/// `systole run`.
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The agent's file.
    pub(crate) agent: PathBuf,
    /// What to do, in your words; `-` reads standard input. Without it the agent's unfinished run
    /// goes on.
    pub(crate) text: Option<String>,
    /// Goes on with this thread.
    #[arg(long, value_name = "ID")]
    pub(crate) thread: Option<ThreadId>,
    /// Begins a new thread even if an unfinished one began with the same text.
    #[arg(long, conflicts_with = "thread")]
    pub(crate) new: bool,
    /// Approves every call of this tool; may be given several times.
    #[arg(long, value_name = "TOOL")]
    pub(crate) approve: Vec<ToolName>,
    /// How hard the task is, 1 to 5; sets the turn limit.
    #[arg(long, value_name = "1-5", value_parser = clap::value_parser!(u32).range(1..=5))]
    pub(crate) complexity: Option<u32>,
    /// Prints one event per line, as JSON; the last one is `run_finished`.
    #[arg(long)]
    pub(crate) json: bool,
    /// Which model answers.
    #[command(flatten)]
    pub(crate) model: ModelChoice,
}

/// Which model answers.
#[derive(Clone, Debug, Args)]
pub(crate) struct ModelChoice {
    /// The model to ask for, in place of the one in the agent's file.
    #[arg(long, env = "SYSTOLE_MODEL", value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// The key of an OpenAI-compatible endpoint. Without one the agent's rehearsal answers.
    #[arg(long, env = "OPENAI_API_KEY", value_name = "KEY", hide_env_values = true, hide = true)]
    pub(crate) api_key: Option<String>,
    /// The endpoint, such as `http://localhost:11434/v1`.
    #[arg(long, env = "OPENAI_BASE_URL", value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// Lets the agent's rehearsal answer, with or without a key.
    #[arg(long)]
    pub(crate) rehearsed: bool,
    /// How fast a rehearsal speaks: 1 as written, 0 without pauses.
    #[arg(
        long,
        env = "SYSTOLE_REHEARSAL_PACE",
        value_name = "FACTOR",
        default_value_t = 1.0,
        hide = true
    )]
    pub(crate) pace: f64,
}

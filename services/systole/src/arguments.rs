//! The command line. Each setting has a flag and, where it makes sense, a variable; a flag wins.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use proto::ids::{ThreadId, ToolName};

/// Runs agents whose tool calls survive crashes.
#[derive(Debug, Parser)]
#[command(name = "systole", version, max_term_width = 100)]
pub(crate) struct Arguments {
    /// What every command takes.
    #[command(flatten)]
    pub(crate) common: Common,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct Common {
    /// The file that holds threads, queues and memory.
    #[arg(
        long,
        global = true,
        env = "SYSTOLE_STORE",
        value_name = "FILE",
        default_value = ".systole/systole.db"
    )]
    pub(crate) store: PathBuf,
    /// The most bytes that the store's file may take; beyond it writes are refused.
    #[arg(long, global = true, env = "SYSTOLE_STORE_MAX_BYTES", value_name = "BYTES", hide = true)]
    pub(crate) store_max_bytes: Option<u64>,
    /// Colours: where a terminal is, always, never. `NO_COLOR` counts as never.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColourChoice,
    /// Says more on standard error; twice says even more.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// What to log, such as `info` or `planner=debug`.
    #[arg(long, global = true, env = "SYSTOLE_LOG", value_name = "FILTER", hide = true)]
    pub(crate) log: Option<String>,
}

/// When colours are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColourChoice {
    /// On a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Runs an agent on a text, or goes on with its unfinished run.
    Run(Run),
    /// Shows what this is for: an agent repairs a real service.
    Demo(Demo),
    /// Lists threads, or shows one: its transcript, its journal, its model request.
    Show(Show),
    /// Stops a thread's run and tells how far each of its calls had come.
    Cancel(Cancel),
    /// Works on tool files.
    #[command(subcommand)]
    Tools(Tools),
    /// Measures what this machine reaches.
    Bench(Bench),
    /// The bench's model; serves until standard input ends.
    #[command(hide = true)]
    BenchModel(BenchModel),
    /// One measurement of the bench.
    #[command(subcommand, hide = true)]
    BenchPart(BenchPart),
    /// The service that the demo repairs.
    #[command(hide = true)]
    DemoService(DemoService),
    /// The commands behind the demo's tools.
    #[command(subcommand, hide = true)]
    DemoTool(DemoTool),
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

/// `systole demo`.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Which demo.
    #[arg(default_value = "ops")]
    pub(crate) name: DemoName,
    /// What the service does.
    #[arg(long, default_value = "failing")]
    pub(crate) scenario: Scenario,
    /// Leaves the service running.
    #[arg(long)]
    pub(crate) keep: bool,
    /// Prints one event per line, as JSON; the last one is `run_finished`.
    #[arg(long)]
    pub(crate) json: bool,
    /// Which model answers.
    #[command(flatten)]
    pub(crate) model: ModelChoice,
}

/// Which demo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DemoName {
    /// An alert, a failing service, a restart, a post-mortem.
    Ops,
}

/// What the demo's service does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scenario {
    /// It begins to fail and is well after a restart.
    Failing,
    /// It is well all the time.
    Healthy,
    /// It begins to fail and cannot be restarted.
    RestartFails,
}

impl Scenario {
    /// The word on the command line.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Failing => "failing",
            Self::Healthy => "healthy",
            Self::RestartFails => "restart-fails",
        }
    }
}

/// `systole show`.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// A thread's id, the end of one, or `last`; all threads without it.
    pub(crate) thread: Option<String>,
    /// The exact request of the newest turn, with its tokens.
    #[arg(long, conflicts_with = "journal")]
    pub(crate) prompt: bool,
    /// With --prompt: the request of this turn of the newest run.
    #[arg(long, value_name = "N", requires = "prompt")]
    pub(crate) turn: Option<u32>,
    /// Every record, one a line.
    #[arg(long)]
    pub(crate) journal: bool,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `systole cancel`.
#[derive(Debug, Args)]
pub(crate) struct Cancel {
    /// A thread's id, the end of one, or `last`.
    pub(crate) thread: String,
    /// Why, for people.
    #[arg(long, default_value = "cancelled from the command line")]
    pub(crate) reason: String,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

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

/// `systole bench`.
#[derive(Debug, Args)]
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

/// `systole demo-service`.
#[derive(Debug, Args)]
pub(crate) struct DemoService {
    /// Its folder.
    #[arg(long)]
    pub(crate) dir: PathBuf,
    /// Its port; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    pub(crate) port: u16,
    /// Loses a connection of its pool with each request.
    #[arg(long)]
    pub(crate) leak: bool,
    /// Cannot start.
    #[arg(long)]
    pub(crate) broken: bool,
}

/// `systole demo-tool`.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum DemoTool {
    /// Asks the service how it is.
    Probe,
    /// The end of the service's log.
    Log {
        /// How many.
        #[arg(long, default_value_t = 20)]
        lines: usize,
    },
    /// Ends the service's process and starts a new one.
    Restart {
        /// Why.
        #[arg(long)]
        reason: String,
    },
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn demo_needs_no_word_more() {
        let arguments = Arguments::try_parse_from(["systole", "demo", "--json"]).unwrap();
        let Command::Demo(demo) = arguments.command else { panic!("{:?}", arguments.command) };
        assert_eq!((demo.name, demo.scenario, demo.json), (DemoName::Ops, Scenario::Failing, true));
    }
}

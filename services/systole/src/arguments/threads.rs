//! `threads`, `show`, `cancel` and `approve`: what is seen of threads and done to them.

use clap::{Args, Subcommand, ValueEnum};

use super::{Freeze, Thaw};

/// What is seen of threads and done to them.
#[derive(Debug, Subcommand)]
pub(crate) enum ThreadCommand {
    /// Lists threads.
    Threads(Threads),
    /// Lists threads, or shows one: its transcript, its journal, its model request.
    Show(Show),
    /// Stops a thread's run and tells how far each of its calls had come.
    Cancel(Cancel),
    /// Agrees to a call that waits for a person's word, or refuses it.
    Approve(Approve),
    /// Holds tools back: nothing irreversible starts. Without a flag it lists what is frozen.
    Freeze(Freeze),
    /// Lets frozen tools go.
    Thaw(Thaw),
}

impl ThreadCommand {
    /// Whether it prints for programs.
    pub(crate) fn wants_json(&self) -> bool {
        match self {
            Self::Threads(asked) => asked.json,
            Self::Show(show) => show.json,
            Self::Cancel(cancel) => cancel.json,
            Self::Approve(approve) => approve.json,
            Self::Freeze(freeze) => freeze.json,
            Self::Thaw(thaw) => thaw.json,
        }
    }
}

/// `systole threads`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  systole threads --state waiting\n  systole threads --json | jq -r .thread"
)]
pub(crate) struct Threads {
    /// Only threads in this state; may be given several times.
    #[arg(long, value_name = "STATE")]
    pub(crate) state: Vec<ThreadState>,
    /// The most that are listed, newest first.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) limit: u32,
    /// As JSON, one thread a line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// How a thread stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ThreadState {
    /// Its run is not over.
    Running,
    /// Its run is not over, and no process runs on the store.
    Interrupted,
    /// Its run waits for a person's word.
    Waiting,
    /// Its newest run was answered.
    Answered,
    /// Its newest run failed.
    Failed,
    /// Its newest run was stopped: by a limit or a cancel.
    Stopped,
    /// It has no run.
    Empty,
}

/// `systole approve`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  systole approve last\n  systole approve 9KZ2 --deny --reason \"not on a Friday\""
)]
pub(crate) struct Approve {
    /// A thread's id, the end of one, or `last`.
    pub(crate) thread: String,
    /// The call, or the beginning of its id; may be left out when only one waits.
    pub(crate) call: Option<String>,
    /// Refuses it.
    #[arg(long)]
    pub(crate) deny: bool,
    /// A word to the model, such as why it is refused.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) reason: String,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `systole show`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  systole show last\n  systole show last --journal\n  systole show last --prompt --turn 2"
)]
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
#[command(after_help = "Example:\n  systole cancel last --reason \"wrong host\"")]
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

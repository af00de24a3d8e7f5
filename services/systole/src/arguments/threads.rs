//! `show` and `cancel`: what is done to a thread.

use clap::Args;

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

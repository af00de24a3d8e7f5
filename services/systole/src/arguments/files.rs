//! `agents`, `new`, `completions` and `man`: what is done with files, not with threads.

use std::path::PathBuf;

use clap::Subcommand;
use clap_complete::Shell;

/// What is done with files.
#[derive(Debug, Subcommand)]
pub(crate) enum FileCommand {
    /// Works on agent files.
    #[command(subcommand)]
    Agents(Agents),
    /// Begins something that runs at once.
    #[command(subcommand)]
    New(New),
    /// Prints the completion of commands and flags for a shell.
    #[command(
        after_help = "Example:\n  systole completions bash > ~/.local/share/bash-completion/completions/systole"
    )]
    Completions {
        /// Which shell.
        shell: Shell,
    },
    /// Writes a manual page for each command.
    #[command(after_help = "Example:\n  systole man ~/.local/share/man/man1 && man systole-run")]
    Man {
        /// The folder; made when it is not there.
        dir: PathBuf,
    },
}

impl FileCommand {
    /// Whether it prints for programs.
    pub(crate) fn wants_json(&self) -> bool {
        match self {
            Self::Agents(Agents::Check { json, .. } | Agents::List { json, .. }) => *json,
            Self::New(_) | Self::Completions { .. } | Self::Man { .. } => false,
        }
    }
}

/// `systole agents`.
#[derive(Debug, Subcommand)]
pub(crate) enum Agents {
    /// Checks agents with their tools and rehearsals, and gives advice.
    #[command(after_help = "Examples:\n  systole agents check\n  systole agents check agents/ops")]
    Check {
        /// Agents' files, or folders that hold them; without any, as for `dev`.
        #[arg(value_name = "AGENT")]
        agents: Vec<PathBuf>,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Lists agents: name, model, tools, file.
    #[command(after_help = "Example:\n  systole agents list --json")]
    List {
        /// Agents' files, or folders that hold them; without any, as for `dev`.
        #[arg(value_name = "AGENT")]
        agents: Vec<PathBuf>,
        /// As JSON, one agent a line.
        #[arg(long)]
        json: bool,
    },
}

/// `systole new`.
#[derive(Debug, Subcommand)]
pub(crate) enum New {
    /// Begins an agent with one tool and a rehearsal, commented.
    #[command(
        after_help = "Example:\n  systole new agent greeter\n  systole run agents/greeter/agent.yaml \"Greet Ada.\""
    )]
    Agent {
        /// Its name: letters, digits, `-` and `_`.
        name: String,
        /// The folder in which its folder is made.
        #[arg(long, value_name = "FOLDER", default_value = "agents")]
        dir: PathBuf,
    },
}

//! `demo` and what it starts.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::ModelChoice;
use crate::settings::Environment;

/// `systole demo`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  systole demo\n  systole demo --scenario restart-fails")]
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

impl Demo {
    /// The words that go on the same way; the scenario is kept in the demo's folder. Never a key.
    pub(crate) fn again(&self, environment: &Environment) -> Vec<OsString> {
        let mut words: Vec<OsString> = vec!["demo".into(), "ops".into()];
        words.extend(self.keep.then(|| "--keep".into()));
        words.extend(self.json.then(|| "--json".into()));
        words.extend(self.model.again(environment));
        words
    }
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
    /// An MCP server whose only tool writes down what it is told, for drills.
    Mcp,
}

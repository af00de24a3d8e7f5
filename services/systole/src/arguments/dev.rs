//! `dev`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::ModelChoice;
use crate::settings::Environment;

/// `systole dev`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  systole dev                          # every agent under agents/\n  systole dev agents/ops support.yaml\n  systole dev --dry-run"
)]
pub(crate) struct Dev {
    /// Agents' files, or folders that hold them. Without any: the folder `agents`, or else the agent
    /// files (`*.yaml`) in this folder.
    #[arg(value_name = "AGENT")]
    pub(crate) agents: Vec<PathBuf>,
    /// Prints one event per line, as JSON, of all threads.
    #[arg(long)]
    pub(crate) json: bool,
    /// Tools that must not happen twice only say what they would do; nobody is asked to approve
    /// them.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Which model answers.
    #[command(flatten)]
    pub(crate) model: ModelChoice,
}

impl Dev {
    /// The words that start it again in the same way.
    pub(crate) fn again(&self, environment: &Environment) -> Vec<OsString> {
        let mut words: Vec<OsString> = vec!["dev".into()];
        words.extend(self.agents.iter().map(|path| path.clone().into_os_string()));
        words.extend(self.json.then(|| "--json".into()));
        words.extend(self.dry_run.then(|| "--dry-run".into()));
        words.extend(self.model.again(environment));
        words
    }
}

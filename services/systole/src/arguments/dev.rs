//! `dev`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{BusFlags, Given, ModelChoice};
use crate::settings::Environment;

/// `systole dev`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Examples:\n  systole dev                          # every agent under agents/\n  systole dev agents/ops support.yaml\n  systole dev --dry-run\n  systole dev --nats nats://n1:4222 --redis redis://r1:6379 --roles planner,gateway"
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
    /// Where it serves HTTP; port 0 takes a free one, `off` none. Only this machine is served.
    #[arg(long, env = "SYSTOLE_LISTEN", value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// What it is in a deployment; all three unless said otherwise. Needs --nats.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "ROLES")]
    pub(crate) roles: Vec<NodeRole>,
    /// How long work that is under way in a deployment may take once the end was asked for.
    #[arg(long, value_name = "S", hide_short_help = true)]
    pub(crate) grace_s: Option<String>,
    /// Which model answers.
    #[command(flatten)]
    pub(crate) model: ModelChoice,
    /// A deployment to join; without one everything is in the store of this machine.
    #[command(flatten)]
    pub(crate) bus: BusFlags,
}

/// A part of a deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum NodeRole {
    /// Asks the model and decides.
    Planner,
    /// Runs tools.
    Worker,
    /// Serves HTTP.
    Gateway,
}

impl Dev {
    /// The words that start it again in the same way.
    pub(crate) fn again(&self, environment: &Environment) -> Vec<OsString> {
        let mut words: Vec<OsString> = vec!["dev".into()];
        words.extend(self.agents.iter().map(|path| path.clone().into_os_string()));
        words.extend(self.json.then(|| "--json".into()));
        words.extend(self.dry_run.then(|| "--dry-run".into()));
        words.extend(self.listen.iter().flat_map(|at| ["--listen".into(), at.into()]));
        words.extend(self.model.again(environment));
        words
    }

    /// Whether it is that part of the deployment that it joins.
    pub(crate) fn is(&self, role: NodeRole) -> bool {
        self.roles.is_empty() || self.roles.contains(&role)
    }

    /// What was given of the settings of a deployment.
    pub(crate) fn given(&self) -> Vec<Given> {
        let own = vec![("listen", self.listen.clone()), ("grace_s", self.grace_s.clone())];
        [self.bus.given(), own].concat()
    }
}

//! `freeze` and `thaw`.

use clap::Args;
use proto::ids::{TenantId, ToolName};

use super::BusFlags;

/// `systole freeze`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  systole freeze --all --reason \"incident 7\"\n  systole freeze --tool restart_service\n  systole freeze --nats nats://n1:4222 --all   # in every worker of a deployment\n  systole freeze            # lists what is frozen"
)]
pub(crate) struct Freeze {
    /// Every irreversible tool.
    #[arg(long)]
    pub(crate) all: bool,
    /// This tool, whatever repeating it does; may be given several times.
    #[arg(long, value_name = "TOOL")]
    pub(crate) tool: Vec<ToolName>,
    /// The irreversible tools of this tenant's threads; may be given several times.
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Vec<TenantId>,
    /// Why, for people and for the model.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) reason: String,
    /// As JSON, one freeze a line.
    #[arg(long)]
    pub(crate) json: bool,
    /// A deployment; without one the store is meant.
    #[command(flatten)]
    pub(crate) bus: BusFlags,
}

/// `systole thaw`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  systole thaw --tool restart_service\n  systole thaw --all       # lets go of everything"
)]
pub(crate) struct Thaw {
    /// All that is frozen.
    #[arg(long)]
    pub(crate) all: bool,
    /// This tool; may be given several times.
    #[arg(long, value_name = "TOOL")]
    pub(crate) tool: Vec<ToolName>,
    /// The irreversible tools of this tenant's threads; may be given several times.
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Vec<TenantId>,
    /// As JSON, one a line: what is thawed, then what is still frozen.
    #[arg(long)]
    pub(crate) json: bool,
    /// A deployment; without one the store is meant.
    #[command(flatten)]
    pub(crate) bus: BusFlags,
}

//! `systole planner`: a planner as a process of its own.

use planner::{AgentBook, Metrics};
use service_runtime::shutdown::Shutdown;
use service_runtime::tasks::TaskSet;

use super::Context;
use crate::agent_files::{Disk, price_table};
use crate::arguments::PlannerFlags;
use crate::failure::{Exit, Failure};
use crate::nodes::agents::load_all;
use crate::nodes::kill::KillSwitch;
use crate::nodes::process::Process;
use crate::nodes::settings::PlannerSettings;
use crate::nodes::skew::Skew;
use crate::nodes::sources;
use crate::wiring::servers::Servers;

/// Runs it until it is told to stop.
pub(crate) async fn planner(context: &Context, flags: &PlannerFlags) -> Result<Exit, Failure> {
    let found = sources::find(flags.bus.config.as_deref(), &context.environment, &flags.given())?;
    let settings = found.read(PlannerSettings::read)?;
    let prices = settings.prices.as_deref().map(price_table).transpose()?.unwrap_or_default();
    let agents = load_all(&Disk, &settings.agents, settings.model.as_deref(), &prices)?;
    for agent in &agents {
        let unpriced = agent.unpriced();
        if !unpriced.is_empty() {
            let models = unpriced.join(", ");
            tracing::warn!(agent = %agent.name, models, "no price is known: its runs count tokens, not money");
        }
    }
    let names: Vec<String> = agents.iter().map(|agent| agent.name.to_string()).collect();
    tracing::info!(agents = names.join(", "), "agents are loaded");
    let switch = KillSwitch::of(&context.environment)?;
    let skew = Skew::of(&context.environment)?;
    let mut process = Process::start(settings.life).await?;
    let mut tasks = TaskSet::new();
    let metrics = Metrics::new();
    process.serve(&mut tasks, vec![metrics.registry().clone()]);
    let connected =
        process.unless_asked(Servers::connect(&settings.bus, "planner", &switch)).await?;
    let Some(servers) = connected else { return Ok(Exit::Interrupted) };
    let servers = servers.skewed(skew).remembering(&context.common);
    let planner = servers.planner(&settings, AgentBook::new(agents), metrics, &mut tasks)?;
    servers.guard(&process.health);
    let shutdown = Shutdown::new();
    process.run(planner.run(shutdown.clone()), shutdown).await
}

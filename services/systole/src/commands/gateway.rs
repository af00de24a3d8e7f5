//! `systole gateway`: the gateway as a process of its own.

use std::time::Duration;

use gateway::Metrics;
use service_runtime::shutdown::Shutdown;
use service_runtime::tasks::TaskSet;

use super::Context;
use crate::arguments::GatewayFlags;
use crate::failure::{Exit, Failure};
use crate::nodes::kill::KillSwitch;
use crate::nodes::process::Process;
use crate::nodes::settings::GatewaySettings;
use crate::nodes::skew::Skew;
use crate::nodes::sources;
use crate::wiring::servers::Servers;

/// Runs it until it is told to stop.
pub(crate) async fn gateway(context: &Context, flags: &GatewayFlags) -> Result<Exit, Failure> {
    let found = sources::find(flags.bus.config.as_deref(), &context.environment, &flags.given())?;
    let settings = found.read(GatewaySettings::read)?;
    let switch = KillSwitch::of(&context.environment)?;
    let skew = Skew::of(&context.environment)?;
    let mut process = Process::start(settings.life).await?;
    let metrics = Metrics::new();
    // Until there is more to serve, health is served on the same address.
    let mut waiting = TaskSet::new();
    let listener = process.listener()?;
    process.serve(&mut waiting, vec![metrics.registry().clone()]);
    let connecting = Servers::connect(&settings.bus, "gateway", &switch);
    let connected = process.unless_asked(connecting).await?;
    let Some(servers) = connected else { return Ok(Exit::Interrupted) };
    let servers = servers.skewed(skew).remembering(&context.common);
    waiting.finish(Duration::ZERO).await;
    servers.guard(&process.health);
    let shutdown = Shutdown::new();
    let health = process.health.clone();
    let gateway = servers.gateway(settings.gateway, metrics, health, shutdown.clone());
    process.run(gateway.serve(listener), shutdown).await
}

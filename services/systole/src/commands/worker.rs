//! `systole worker`: a worker as a process of its own.

use proto::error_code::ErrorCode;
use service_runtime::shutdown::Shutdown;
use service_runtime::tasks::TaskSet;
use worker::Metrics;

use super::Context;
use crate::agent_files::{Disk, LoadedTool, doubles, load_manifest};
use crate::arguments::WorkerFlags;
use crate::failure::{Exit, Failure};
use crate::nodes::kill::KillSwitch;
use crate::nodes::process::Process;
use crate::nodes::settings::WorkerSettings;
use crate::nodes::skew::Skew;
use crate::nodes::sources;
use crate::wiring::servers::Servers;

/// Runs it until it is told to stop.
pub(crate) async fn worker(context: &Context, flags: &WorkerFlags) -> Result<Exit, Failure> {
    let found = sources::find(flags.bus.config.as_deref(), &context.environment, &flags.given())?;
    let settings = found.read(WorkerSettings::read)?;
    let tools = tools(context, &settings)?;
    Box::pin(serve(context, &settings, &tools)).await
}

/// Serves these tools until it is told to stop.
pub(crate) async fn serve(
    context: &Context,
    settings: &WorkerSettings,
    tools: &[LoadedTool],
) -> Result<Exit, Failure> {
    let switch = KillSwitch::of(&context.environment)?;
    let skew = Skew::of(&context.environment)?;
    let mut process = Process::start(settings.life).await?;
    let mut tasks = TaskSet::new();
    let metrics = Metrics::new();
    process.serve(&mut tasks, vec![metrics.registry().clone()]);
    let connected =
        process.unless_asked(Servers::connect(&settings.bus, "worker", &switch)).await?;
    let Some(servers) = connected else { return Ok(Exit::Interrupted) };
    let servers = servers.skewed(skew).remembering(&context.common);
    let worker = servers.worker(settings, tools, &context.environment, metrics);
    let Some(worker) = process.unless_asked(worker).await? else { return Ok(Exit::Interrupted) };
    servers.guard(&process.health);
    let shutdown = Shutdown::new();
    let stopping = shutdown.clone();
    let service = async move {
        worker.run(stopping).await;
        Ok(())
    };
    process.run(service, shutdown).await
}

/// The tools of all manifests; what is wrong with any of them is told at once.
fn tools(context: &Context, settings: &WorkerSettings) -> Result<Vec<LoadedTool>, Failure> {
    let mut tools = Vec::new();
    let mut problems = Vec::new();
    for manifest in &settings.tools {
        match load_manifest(&Disk, manifest, &context.environment)? {
            Ok(loaded) => {
                problems.extend(doubles(&tools, &loaded));
                tools.extend(loaded);
            }
            Err(found) => problems.extend(found),
        }
    }
    if problems.is_empty() {
        return Ok(tools);
    }
    Err(Failure::files(ErrorCode::InvalidManifest, &problems))
}

//! `systole bench-part worker`: a worker as `systole worker` starts it, with the bench's tools.

use std::time::Duration;

use super::super::files::{NO_OP, PAUSE, agent, loaded};
use super::super::script::FAST;
use super::connection::settings;
use crate::arguments::BenchServers;
use crate::commands::{Context, worker};
use crate::failure::{Exit, Failure};
use crate::nodes::settings::{Life, WorkerSettings};

/// Serves until it is told to stop, `slots` calls at once.
pub(crate) async fn serve(
    context: &Context,
    servers: &BenchServers,
    slots: usize,
) -> Result<Exit, Failure> {
    let folder = std::env::current_dir().map_err(|error| Failure::other("the folder", error))?;
    let tools = format!("{NO_OP}, {PAUSE}");
    let loaded = loaded(agent(FAST, "safe", &tools), &folder, &context.environment)?;
    let listen = "127.0.0.1:0".parse().ok();
    let settings = WorkerSettings {
        bus: settings(servers),
        life: Life { listen, grace: Duration::from_secs(1) },
        tools: Vec::new(),
        slots,
    };
    Box::pin(worker::serve(context, &settings, &loaded.tools)).await
}

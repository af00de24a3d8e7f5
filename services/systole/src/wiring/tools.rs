//! Tools with what carries them out.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use definitions::run::Run;
use worker::executor::dry_run::DryRun;
use worker::executor::{Executor, ExecutorSettings, McpServers, McpSource, from_run};
use worker::{Tool, Tools};

use super::clock;
use crate::agent_files::LoadedTool;
use crate::engine::Ports;
use crate::failure::Failure;
use crate::settings::Environment;
use crate::staff::Hands;

/// The running program, even after its file was replaced.
const SELF: &str = "/proc/self/exe";

/// What a server of tools needs that is only asked for its tools.
pub(crate) fn executor_settings(environment: &Environment, folder: &Path) -> ExecutorSettings {
    ExecutorSettings {
        guard: Some(PathBuf::from(SELF)),
        self_exe: PathBuf::from(SELF),
        manifest_folder: folder.to_owned(),
        environment: environment.all().clone(),
        clock: clock(),
        artifacts: None,
        memory: None,
        mcp: McpServers::default(),
    }
}

/// Tools with what carries them out, and what they promise.
pub(super) fn tools_of<'t>(
    loaded: impl IntoIterator<Item = &'t LoadedTool>,
    environment: &Environment,
    hands: &Hands,
    ports: &Ports,
) -> Result<Tools, Failure> {
    let mut tools = Tools::new();
    let servers = McpServers::default();
    let mut served = Vec::new();
    for LoadedTool { definition, folder, .. } in loaded {
        let settings = ExecutorSettings {
            clock: Arc::clone(&ports.clock),
            artifacts: Some(Arc::clone(&ports.artifacts)),
            mcp: servers.clone(),
            memory: ports.memory.clone(),
            ..executor_settings(environment, folder)
        };
        let executor_is_real =
            hands.stand_in(&definition.contract).is_none() && !hands.is_dry(&definition.contract);
        let (contract, executor, probe) =
            if let Some(stand_in) = hands.stand_in(&definition.contract) {
                (definition.contract.clone(), stand_in, None)
            } else if hands.is_dry(&definition.contract) {
                let executor: Arc<dyn Executor> = Arc::new(DryRun::new(&definition.run, folder));
                (hands.dry(&definition.contract), executor, None)
            } else {
                let probe = definition.probe.as_ref().map(|probe| from_run(probe, &settings));
                (definition.contract.clone(), from_run(&definition.run, &settings), probe)
            };
        let is_real = contract.fingerprint == definition.contract.fingerprint;
        let is_served = matches!(definition.run, Run::Mcp(_)) && executor_is_real;
        let name = contract.name.clone();
        let tool = Tool::new(contract, executor, probe)
            .map_err(|error| Failure::other(definition.contract.name.as_str(), error))?;
        let ways = definition.policy.fallbacks.iter().map(|run| from_run(run, &settings));
        tools.add(match hands.stand_in(&definition.contract) {
            None if is_real => tool.with_policy(definition.policy.clone(), ways.collect()),
            Some(_) | None => tool,
        });
        if is_served {
            // Until its server has told what it is.
            tools.withdraw(&name);
            served.push((definition.clone(), settings));
        }
    }
    tools.keep(McpSource::of(&served));
    Ok(tools)
}

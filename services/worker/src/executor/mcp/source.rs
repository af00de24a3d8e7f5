//! Keeps what a worker offers true to what its MCP servers say.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use definitions::manifest::ToolDefinition;
use definitions::mcp::LiveTool;
use definitions::run::Run;
use tokio::time::sleep;

use super::super::settings::{ExecutorSettings, from_run};
use super::pool::Pool;
use crate::tools::{Tool, Tools};

/// Before a server that does not answer is asked again.
const AGAIN: Duration = Duration::from_secs(2);
/// Several changes at once are looked at once.
const SETTLE: Duration = Duration::from_millis(50);

/// The tools of one server.
#[derive(Clone)]
pub struct McpSource {
    pool: Arc<Pool>,
    settings: ExecutorSettings,
    definitions: Vec<ToolDefinition>,
}

impl fmt::Debug for McpSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpSource").field("server", &self.name()).finish_non_exhaustive()
    }
}

impl McpSource {
    /// The servers of these tools, each with its own of them; none for tools without a server.
    pub fn of(definitions: &[(ToolDefinition, ExecutorSettings)]) -> Vec<Self> {
        let mut sources: Vec<Self> = Vec::new();
        for (definition, settings) in definitions {
            let Run::Mcp(run) = &definition.run else { continue };
            match sources.iter_mut().find(|source| source.pool.is_of(&run.server)) {
                Some(source) => source.definitions.push(definition.clone()),
                None => sources.push(Self {
                    pool: settings.mcp.pool(&run.server, settings),
                    settings: settings.clone(),
                    definitions: vec![definition.clone()],
                }),
            }
        }
        sources
    }

    /// The server in words.
    pub fn name(&self) -> String {
        super::named(self.pool.server())
    }

    /// Asks the server for its tools and puts those of the manifest into `tools`. One that cannot be
    /// offered is withdrawn. The error says why the server does not answer, or what is missing.
    pub async fn renew(&self, tools: &Tools) -> Result<(), String> {
        let live = match self.pool.tools().await {
            Ok(live) => live,
            Err(why) => {
                self.withdraw(tools);
                return Err(format!("MCP server {}: {why}", self.name()));
            }
        };
        let wrong: Vec<String> = self
            .definitions
            .iter()
            .filter_map(|definition| {
                let why = self.offer(definition, &live, tools).err()?;
                tools.withdraw(&definition.contract.name);
                Some(format!(
                    "tool {} of MCP server {}: {why}",
                    definition.contract.name,
                    self.name()
                ))
            })
            .collect();
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
    }

    fn withdraw(&self, tools: &Tools) {
        for definition in &self.definitions {
            tools.withdraw(&definition.contract.name);
        }
    }

    fn offer(
        &self,
        definition: &ToolDefinition,
        live: &[LiveTool],
        tools: &Tools,
    ) -> Result<(), String> {
        let Run::Mcp(run) = &definition.run else { return Ok(()) };
        let found = live.iter().find(|tool| tool.name == run.tool).ok_or_else(|| {
            let names = live.iter().map(|tool| tool.name.as_str());
            let near = argument_check::nearest(&run.tool, names);
            let hint = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            format!("the server has no tool `{}`{hint}", run.tool)
        })?;
        let resolved = definition.resolved(found)?;
        let name = &resolved.contract.name;
        let known = tools.get(name).filter(|_| tools.is_offered(name));
        if known.is_some_and(|known| known.contract == resolved.contract) {
            return Ok(());
        }
        let probe = resolved.probe.as_ref().map(|probe| from_run(probe, &self.settings));
        let executor = from_run(&resolved.run, &self.settings);
        let tool = Tool::new(resolved.contract, executor, probe).map_err(|bad| bad.to_string())?;
        let ways = resolved.policy.fallbacks.iter().map(|run| from_run(run, &self.settings));
        let ways = ways.collect();
        tools.add(tool.with_policy(resolved.policy, ways));
        Ok(())
    }

    /// Keeps the server's instances warm and the offer true, for ever.
    pub(crate) async fn follow(self, tools: Tools) {
        let (mut changes, mut lost) = (self.pool.changes(), self.pool.lost());
        let mut is_due = self.definitions.iter().any(|one| !tools.is_offered(&one.contract.name));
        loop {
            if is_due {
                is_due = self.renew(&tools).await.is_err_and(|why| {
                    tracing::warn!("{why}");
                    true
                });
            }
            let cold = self.pool.warm().await.err();
            if let Some(cold) = &cold {
                tracing::warn!(
                    server = self.name(),
                    why = cold.why,
                    "an MCP server does not start"
                );
            }
            tokio::select! {
                _ = changes.changed() => {
                    sleep(SETTLE).await;
                    changes.mark_unchanged();
                    is_due = true;
                }
                _ = lost.changed() => {}
                () = sleep(AGAIN) => {}
            }
        }
    }

    /// Ends the instances that wait.
    pub(crate) async fn close(&self) {
        self.pool.close().await;
    }
}

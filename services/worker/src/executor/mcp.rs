//! Tools of MCP servers.
//!
//! A server is kept warm: its processes, or its sessions when it runs elsewhere, are started before the
//! first call and used again. One instance works on one call at a time. So whatever ends a call badly,
//! a cancel, a limit, a crash, ends its instance and nobody else's call; a fresh one takes its place,
//! after a pause that grows while a server keeps dying.
//!
//! Nothing began until the request was handed to the connection. From then on a missing answer leaves
//! open what happened: it counts as a crash, which a tool that may not be repeated reports as a doubt.
//!
//! Reading order: [`McpServers`], [`McpTool`] · `pool` keeps instances · `instance` is one of them,
//! `process` its process · `client` hears what it says unasked · `call` makes one call · `content`
//! makes a result of the answer · [`McpSource`] keeps the offer true to what the server says.

mod call;
mod client;
mod content;
mod instance;
mod pool;
mod process;
mod source;

use std::sync::Arc;

use async_trait::async_trait;
use definitions::mcp::{LiveTool, McpPlace, McpRun, McpServer};
use ports::artifacts::Artifacts;
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::settings::ExecutorSettings;
use super::{Ended, Executor, Job, NotStarted, Prepared};
use call::Call;
use pool::{Lease, Pool};
pub use source::McpSource;

/// The MCP servers of a process.
#[derive(Clone, Default)]
pub struct McpServers {
    pools: Arc<watch::Sender<Vec<Arc<Pool>>>>,
}

impl McpServers {
    /// What a server says of its tools, for whoever writes a manifest; it is ended afterwards.
    pub async fn list(
        server: &McpServer,
        settings: &ExecutorSettings,
    ) -> Result<Vec<LiveTool>, String> {
        let pool = Arc::new(Pool::new(server.clone(), settings));
        let tools = pool.tools().await;
        pool.close().await;
        tools
    }

    /// The instances of a server, the same for every tool of it.
    fn pool(&self, server: &McpServer, settings: &ExecutorSettings) -> Arc<Pool> {
        let mut found = None;
        self.pools.send_modify(|pools| {
            let known = pools.iter().find(|pool| pool.is_of(server));
            let pool = known
                .map_or_else(|| Arc::new(Pool::new(server.clone(), settings)), Arc::<Pool>::clone);
            if known.is_none() {
                pools.push(Arc::<Pool>::clone(&pool));
            }
            found = Some(pool);
        });
        found.unwrap_or_else(|| Arc::new(Pool::new(server.clone(), settings)))
    }
}

/// What the tool would do, for a dry run.
pub(super) fn words(run: &McpRun, arguments: &Map<String, Value>) -> String {
    let arguments = Value::Object(arguments.clone());
    format!("call {} of the MCP server {} with {arguments}", run.tool, named(&run.server))
}

/// A server for people: its program, or its address.
fn named(server: &McpServer) -> String {
    match &server.place {
        McpPlace::Process(process) => process.argv.join(" "),
        McpPlace::Http(http) => http.url.clone(),
    }
}

/// One tool of a server.
pub(super) struct McpTool {
    tool: String,
    pool: Arc<Pool>,
    artifacts: Option<Arc<dyn Artifacts>>,
}

impl McpTool {
    pub(super) fn new(run: &McpRun, settings: &ExecutorSettings) -> Self {
        let pool = settings.mcp.pool(&run.server, settings);
        Self { tool: run.tool.clone(), pool, artifacts: settings.artifacts.clone() }
    }
}

#[async_trait]
impl Executor for McpTool {
    async fn prepare(&self, job: &Job) -> Result<Box<dyn Prepared>, NotStarted> {
        let lease = self.pool.take().await?;
        let call = Call {
            tool: self.tool.clone(),
            arguments: job.call.arguments.clone(),
            thread: job.thread.clone(),
            artifacts: self.artifacts.clone(),
        };
        Ok(Box::new(Ready { call, lease }))
    }
}

/// A call with an instance that waits for it.
struct Ready {
    call: Call,
    lease: Lease,
}

#[async_trait]
impl Prepared for Ready {
    /// None that an attempt could be found by later: the group serves many calls, and it ends with its
    /// worker in any case.
    fn process_group(&self) -> Option<i32> {
        None
    }

    async fn run(self: Box<Self>, deadline: Instant, cancel: CancellationToken) -> Ended {
        let Self { call, lease } = *self;
        call.make(lease, deadline, cancel).await
    }
}

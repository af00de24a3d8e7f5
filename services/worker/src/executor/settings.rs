//! From the `run:` part of a manifest to an executor.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use definitions::run::{Builtin, BuiltinRun, Run};
use ports::artifacts::Artifacts;
use ports::clock::Clock;

use super::Executor;
use super::clock::ClockTool;
use super::command::CommandTool;
use super::expand::ExpandTool;
use super::files::{FileTool, Operation};
use super::http::{FetchTool, HttpTool};
use super::mcp::{McpServers, McpTool};
use super::memory::{MemoryTool, ToolMemory};

/// What executors need to know of the process they live in.
#[derive(Clone)]
pub struct ExecutorSettings {
    /// The program whose `guard` subcommand is [`super::guard::main`]. `/proc/self/exe` is the
    /// running program even after its file was replaced. Without one, command tools are started
    /// directly: they do not die with a worker that is killed, and their process group is unknown
    /// before they begin. Leave it out in tests only.
    pub guard: Option<PathBuf>,
    /// What a command whose program is the word `systole` starts.
    pub self_exe: PathBuf,
    /// Where the manifest lies: programs with a `/`, working folders and roots start here.
    pub manifest_folder: PathBuf,
    /// The worker's own environment, of which a tool sees `PATH`, `HOME`, `LANG` and what its
    /// manifest names.
    pub environment: BTreeMap<OsString, OsString>,
    /// What the `clock` builtin reads.
    pub clock: Arc<dyn Clock>,
    /// Where the `expand` builtin finds full results; without it the builtin answers that it cannot.
    pub artifacts: Option<Arc<dyn Artifacts>>,
    /// What `remember`, `recall` and `forget` work on; without it they answer that they cannot.
    pub memory: Option<ToolMemory>,
    /// The MCP servers of this process; tools with equal servers share them.
    pub mcp: McpServers,
}

/// The executor for one tool.
pub fn from_run(run: &Run, settings: &ExecutorSettings) -> Arc<dyn Executor> {
    match run {
        Run::Command(command) => Arc::new(CommandTool::new(command, settings)),
        Run::Http(http) => Arc::new(HttpTool::new(http, settings)),
        Run::Mcp(run) => Arc::new(McpTool::new(run, settings)),
        Run::Builtin(builtin) => from_builtin(builtin, settings),
    }
}

fn from_builtin(run: &BuiltinRun, settings: &ExecutorSettings) -> Arc<dyn Executor> {
    let folder = &settings.manifest_folder;
    let root = run.root.as_deref().map_or_else(|| folder.clone(), |root| folder.join(root));
    match run.builtin {
        Builtin::ListFiles => file_tool(Operation::List, &root),
        Builtin::ReadFile => file_tool(Operation::Read, &root),
        Builtin::SearchFiles => file_tool(Operation::Search, &root),
        Builtin::WriteFile => file_tool(Operation::Write, &root),
        Builtin::EditFile => file_tool(Operation::Edit, &root),
        Builtin::Clock => Arc::new(ClockTool::new(Arc::clone(&settings.clock))),
        Builtin::FetchUrl => Arc::new(FetchTool::new(run.private)),
        Builtin::Expand => Arc::new(ExpandTool::new(settings.artifacts.clone())),
        Builtin::Remember | Builtin::Recall | Builtin::Forget => {
            let (memory, clock) = (settings.memory.clone(), Arc::clone(&settings.clock));
            Arc::new(MemoryTool::new(run.builtin, memory, clock))
        }
    }
}

fn file_tool(operation: Operation, root: &Path) -> Arc<dyn Executor> {
    Arc::new(FileTool::new(operation, root.to_owned()))
}

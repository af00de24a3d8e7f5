//! The command line. Each setting has a flag and, where it makes sense, a variable; a flag wins.
//! One file per group of commands.

mod bench;
mod clients;
mod complaint;
mod demo;
mod dev;
mod drill;
mod files;
mod freeze;
mod memory;
mod nodes;
mod rehearse;
mod run;
mod threads;
mod tools;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use self::bench::{Bench, BenchModel, BenchPart, BenchServers, Measured};
pub(crate) use self::clients::{Send, Tail};
pub(crate) use self::complaint::parse;
pub(crate) use self::demo::{Demo, DemoName, DemoService, DemoTool, Scenario};
pub(crate) use self::dev::{Dev, NodeRole};
pub(crate) use self::drill::Drill;
pub(crate) use self::files::{Agents, FileCommand, New};
pub(crate) use self::freeze::{Freeze, Thaw};
pub(crate) use self::memory::{
    Memory, MemoryEval, MemoryFind, MemoryForget, MemoryIngest, MemoryList, MemoryOne, MemoryPlace,
};
pub(crate) use self::nodes::{
    BusFlags, DoctorFlags, GatewayFlags, Given, NodeCommand, PlannerFlags, WorkerFlags,
};
pub(crate) use self::rehearse::{Rehearse, RehearseTask};
pub(crate) use self::run::{ModelChoice, Run};
pub(crate) use self::threads::{Approve, Cancel, Show, ThreadCommand, ThreadState, Threads};
pub(crate) use self::tools::{Import, ImportMcp, ImportOpenapi, Tools, Written};

/// Where threads lie unless somebody says otherwise.
pub(crate) const USUAL_STORE: &str = ".systole/systole.db";
/// The variable that says otherwise.
pub(crate) const STORE_VARIABLE: &str = "SYSTOLE_STORE";

/// Runs agents whose tool calls survive crashes.
#[derive(Debug, Parser)]
#[command(name = "systole", version, max_term_width = 100)]
pub(crate) struct Arguments {
    /// What every command takes.
    #[command(flatten)]
    pub(crate) common: Common,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct Common {
    /// The file that holds threads, queues and memory.
    #[arg(
        long,
        global = true,
        env = STORE_VARIABLE,
        value_name = "FILE",
        default_value = USUAL_STORE
    )]
    pub(crate) store: PathBuf,
    /// The most bytes that the store's file may take; beyond it writes are refused.
    #[arg(long, global = true, env = "SYSTOLE_STORE_MAX_BYTES", value_name = "BYTES", hide = true)]
    pub(crate) store_max_bytes: Option<u64>,
    /// Where long-term memory lies, by the address of a Qdrant's gRPC; else in a file beside the store.
    #[arg(long, global = true, env = "SYSTOLE_QDRANT", value_name = "URL", hide = true)]
    pub(crate) qdrant: Option<String>,
    /// Its key.
    #[arg(
        long,
        global = true,
        env = "SYSTOLE_QDRANT_KEY",
        value_name = "WORD",
        hide_env_values = true,
        hide = true
    )]
    pub(crate) qdrant_key: Option<String>,
    /// Its collection.
    #[arg(
        long,
        global = true,
        env = "SYSTOLE_QDRANT_COLLECTION",
        value_name = "NAME",
        default_value = "systole_memory",
        hide = true
    )]
    pub(crate) qdrant_collection: String,
    /// An OpenAI-compatible endpoint that makes vectors of texts, up to and with the version; without
    /// one memory is found by words.
    #[arg(long, global = true, env = "SYSTOLE_EMBEDDER", value_name = "URL", hide = true)]
    pub(crate) embedder: Option<String>,
    /// Its key.
    #[arg(
        long,
        global = true,
        env = "SYSTOLE_EMBEDDER_KEY",
        value_name = "WORD",
        hide_env_values = true,
        hide = true
    )]
    pub(crate) embedder_key: Option<String>,
    /// Its model.
    #[arg(
        long,
        global = true,
        env = "SYSTOLE_EMBEDDER_MODEL",
        value_name = "NAME",
        default_value = "text-embedding-3-small",
        hide = true
    )]
    pub(crate) embedder_model: String,
    /// Colours: where a terminal is, always, never. `NO_COLOR` counts as never.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColourChoice,
    /// Says more on standard error; twice says even more.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// What to log, such as `info` or `planner=debug`.
    #[arg(
        long,
        global = true,
        env = "SYSTOLE_LOG",
        value_name = "FILTER",
        value_parser = crate::telemetry::checked,
        hide = true
    )]
    pub(crate) log: Option<String>,
}

/// When colours are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColourChoice {
    /// On a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Runs an agent on a text, or goes on with its unfinished run.
    Run(Run),
    /// Shows what this is for: an agent repairs a real service.
    Demo(Demo),
    /// Stays up and runs agents: what other commands ask on the same store is done here.
    Dev(Box<Dev>),
    /// Threads.
    #[command(flatten)]
    Thread(Box<ThreadCommand>),
    /// A distributed deployment.
    #[command(flatten)]
    Node(Box<NodeCommand>),
    /// Runs an agent's rehearsals as tests.
    Rehearse(Rehearse),
    /// Files.
    #[command(flatten)]
    File(FileCommand),
    /// Works on tool files.
    #[command(subcommand)]
    Tools(Tools),
    /// Long-term memory: what is remembered, why, and how it is forgotten.
    #[command(subcommand)]
    Memory(Box<Memory>),
    /// Measures what this machine reaches.
    Bench(Bench),
    /// The bench's model; serves until standard input ends.
    #[command(hide = true)]
    BenchModel(BenchModel),
    /// One measurement of the bench.
    #[command(subcommand, hide = true)]
    BenchPart(BenchPart),
    /// The service that the demo repairs.
    #[command(hide = true)]
    DemoService(DemoService),
    /// The commands behind the demo's tools.
    #[command(subcommand, hide = true)]
    DemoTool(DemoTool),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    /// Commands of one process; those of a deployment have a page of their own.
    #[test]
    fn help_has_an_example_for_every_command_that_people_type() {
        let deployment = ["planner", "worker", "gateway", "send", "tail", "drill", "serve", "help"];
        let mut root = Arguments::command();
        root.build();
        let mut open: Vec<&clap::Command> = root.get_subcommands().collect();
        while let Some(command) = open.pop() {
            let leaf = command.get_subcommands().next().is_none();
            let is_asked = !command.is_hide_set() && !deployment.contains(&command.get_name());
            if is_asked && leaf {
                let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
                assert!(help.contains("Example"), "{} has no example", command.get_name());
            }
            if is_asked {
                open.extend(command.get_subcommands());
            }
        }
    }

    #[test]
    fn demo_needs_no_word_more() {
        let arguments = Arguments::try_parse_from(["systole", "demo", "--json"]).unwrap();
        let Command::Demo(demo) = arguments.command else { panic!("{:?}", arguments.command) };
        assert_eq!((demo.name, demo.scenario, demo.json), (DemoName::Ops, Scenario::Failing, true));
    }
}

//! How a worker carries out one attempt. An executor knows nothing of journals, claims or retries.
//!
//! Reading order: [`Executor`] · [`settings`] makes one from a manifest's `run:` · `command` runs a
//! process · [`guard`] lets no process outlive its worker · [`group`] ends what an earlier life of
//! this worker left behind · `http` asks servers · `mcp` keeps MCP servers and calls their tools · `files`, `clock`,
//! `expand` and [`memory`] are the builtins ·
//! [`dry_run`] only says what a tool would do.

mod clock;
mod command;
pub mod dry_run;
mod expand;
mod files;
pub mod group;
pub mod guard;
mod http;
mod mcp;
pub mod memory;
mod secrets;
pub mod settings;

pub use mcp::{McpServers, McpSource};
pub use settings::{ExecutorSettings, from_run};

use async_trait::async_trait;
use bytes::Bytes;
use proto::call::ToolCall;
use proto::ids::ThreadRef;
use proto::observation::Receipt;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// One attempt to make.
#[derive(Clone, Debug)]
pub struct Job {
    /// Whose call it is.
    pub thread: ThreadRef,
    /// The call.
    pub call: ToolCall,
    /// From 1.
    pub attempt: u32,
}

/// Why nothing could begin: proof that no effect happened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct NotStarted {
    /// For the model and for people.
    pub why: String,
    /// Whether another try may succeed.
    pub retryable: bool,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The tool did what it was asked.
    Done(Output),
    /// The tool ran and says that it failed.
    Failed {
        /// What it said.
        output: Output,
        /// Why, for the model.
        why: String,
        /// Whether another try may succeed, for tools that may be repeated.
        retryable: bool,
    },
    /// It ended by a signal or a fault of its own.
    Crashed {
        /// What it said before.
        output: Output,
        /// How it ended.
        why: String,
    },
    /// The attempt's deadline passed and it was killed.
    TimedOut {
        /// What it said before.
        output: Output,
    },
    /// It was cancelled and is gone.
    Cancelled {
        /// What it said before.
        output: Output,
        /// How far it had come.
        receipt: Receipt,
    },
    /// Nothing began.
    NotStarted(NotStarted),
}

/// What a tool wrote, bounded by the executor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// The kept bytes; may be invalid UTF-8.
    pub bytes: Bytes,
    /// How much there was in all.
    pub total: u64,
}

/// Runs one tool.
#[async_trait]
pub trait Executor: Send + Sync {
    /// Makes everything ready short of the effect, so that `run` can begin at once.
    async fn prepare(&self, job: &Job) -> Result<Box<dyn Prepared>, NotStarted>;
}

/// An attempt that is ready. Dropping it means that it never begins.
#[async_trait]
pub trait Prepared: Send {
    /// The process group that carries the effect, when there is one.
    fn process_group(&self) -> Option<i32>;

    /// Begins the effect and waits for its end. Kills it at `deadline`, and when `cancel` fires;
    /// when this returns, no process of the attempt is left. Dropping the future kills it too.
    async fn run(self: Box<Self>, deadline: Instant, cancel: CancellationToken) -> Ended;
}

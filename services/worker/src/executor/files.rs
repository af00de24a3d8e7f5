//! Builtins for files under a root folder that they cannot leave.
//!
//! Each reads its arguments, does its work on a thread of its own, and looks at [`Halt`] between
//! two steps. Changes are atomic: a file is written aside and renamed, or left as it was.

mod arguments;
mod edit;
mod list;
mod read;
mod root;
mod search;
mod write;

use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use proto::observation::Receipt;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::{Ended, Executor, Job, NotStarted, Output, Prepared};
use arguments::Arguments;
use root::Root;

/// Most bytes that one call returns.
const MOST_OUTPUT: usize = 1024 * 1024;
/// Longest file that is written or edited.
const MOST_CONTENT: usize = 10 * 1024 * 1024;

/// What a file tool does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    List,
    Read,
    Search,
    Write,
    Edit,
}

/// Why nothing was done: path, rule, fix.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Refused(String);

/// Asks work to end early.
#[derive(Clone, Debug, Default)]
struct Halt(CancellationToken);

impl Halt {
    /// Errs when the attempt is over; to be called before each step, and last before the effect.
    fn check(&self) -> Result<(), Refused> {
        if self.0.is_cancelled() { Err(Refused("stopped".to_owned())) } else { Ok(()) }
    }
}

/// One file tool.
pub(super) struct FileTool {
    operation: Operation,
    root: PathBuf,
}

impl FileTool {
    pub(super) fn new(operation: Operation, root: PathBuf) -> Self {
        Self { operation, root }
    }
}

#[async_trait]
impl Executor for FileTool {
    async fn prepare(&self, job: &Job) -> Result<Box<dyn Prepared>, NotStarted> {
        let task = Task::read(self.operation, &Arguments(&job.call.arguments));
        let task = task.map_err(|why| NotStarted { why, retryable: false })?;
        Ok(Box::new(Ready { task, root: self.root.clone() }))
    }
}

/// What to do, with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Task {
    List(list::List),
    Read(read::Read),
    Search(search::Search),
    Write(write::Write),
    Edit(edit::Edit),
}

impl Task {
    fn read(operation: Operation, arguments: &Arguments<'_>) -> Result<Self, String> {
        match operation {
            Operation::List => list::List::new(arguments).map(Self::List),
            Operation::Read => read::Read::new(arguments).map(Self::Read),
            Operation::Search => search::Search::new(arguments).map(Self::Search),
            Operation::Write => write::Write::new(arguments).map(Self::Write),
            Operation::Edit => edit::Edit::new(arguments).map(Self::Edit),
        }
    }

    fn work(&self, root: &Path, halt: &Halt) -> Result<Output, Refused> {
        let root = Root::open(root)?;
        match self {
            Self::List(list) => list.work(&root, halt),
            Self::Read(read) => read.work(&root, halt),
            Self::Search(search) => search.work(&root, halt),
            Self::Write(write) => write.work(&root, halt),
            Self::Edit(edit) => edit.work(&root, halt),
        }
    }
}

struct Ready {
    task: Task,
    root: PathBuf,
}

#[async_trait]
impl Prepared for Ready {
    fn process_group(&self) -> Option<i32> {
        None
    }

    async fn run(self: Box<Self>, deadline: Instant, cancel: CancellationToken) -> Ended {
        if cancel.is_cancelled() {
            return cancelled(Receipt::StoppedBeforeEffect);
        }
        let halt = Halt::default();
        // Also when this future is dropped.
        let stop = halt.0.clone().drop_guard();
        let mut work = tokio::task::spawn_blocking(move || self.task.work(&self.root, &halt));
        let stopped: fn(Receipt) -> Ended = tokio::select! {
            biased;
            result = &mut work => return ended(result),
            () = cancel.cancelled() => cancelled,
            () = tokio::time::sleep_until(deadline) => late,
        };
        drop(stop);
        settle(work, stopped).await
    }
}

/// How long work that was asked to end may take before it is left alone.
const PATIENCE: Duration = Duration::from_secs(2);

/// Work that was asked to end may have had its effect all the same; only its own end tells.
async fn settle(work: JoinHandle<Result<Output, Refused>>, stopped: fn(Receipt) -> Ended) -> Ended {
    match timeout(PATIENCE, work).await {
        Ok(Ok(Ok(output))) => Ended::Done(output),
        Ok(Ok(Err(_))) => stopped(Receipt::StoppedBeforeEffect),
        Ok(Err(_)) | Err(_) => stopped(Receipt::Unknown),
    }
}

fn cancelled(receipt: Receipt) -> Ended {
    Ended::Cancelled { output: Output::default(), receipt }
}

fn late(_: Receipt) -> Ended {
    Ended::TimedOut { output: Output::default() }
}

fn ended(result: Result<Result<Output, Refused>, tokio::task::JoinError>) -> Ended {
    match result {
        Ok(Ok(output)) => Ended::Done(output),
        Ok(Err(Refused(why))) => Ended::Failed { output: Output::default(), why, retryable: false },
        Err(error) => Ended::Crashed { output: Output::default(), why: error.to_string() },
    }
}

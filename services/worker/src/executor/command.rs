//! Tools that are processes: started from an argument vector, never through a shell.
//!
//! Standard input is the arguments as one JSON object, standard output is the result, standard
//! error explains a failure. Exit code 0 is success, 75 a failure that may pass, any other a
//! failure that will not.

mod capture;
mod direct;
mod guarded;
mod surroundings;
mod template;
mod verdict;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use async_trait::async_trait;
use definitions::run::CommandRun;
use serde_json::{Map, Value};
use tokio::io::AsyncRead;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::secrets::Secrets;
use super::settings::ExecutorSettings;
use super::{Ended, Executor, Job, NotStarted, Prepared};
use capture::{Keep, capture};
pub(super) use surroundings::{inherited, program as program_in};
pub(super) use template::fill;
use verdict::{End, verdict};

/// How much of standard error a failure quotes.
const ERRORS_KEPT: usize = 8 * 1024;

/// One command tool.
pub(super) struct CommandTool {
    run: CommandRun,
    settings: ExecutorSettings,
}

impl CommandTool {
    pub(super) fn new(run: &CommandRun, settings: &ExecutorSettings) -> Self {
        Self { run: run.clone(), settings: settings.clone() }
    }

    fn plan(&self, job: &Job) -> Result<Plan, NotStarted> {
        let mut argv = fill(&self.run.argv, &job.call.arguments)
            .map_err(|why| NotStarted { why, retryable: false })?
            .into_iter();
        let environment = surroundings::environment(&self.run, &self.settings, job);
        let name = argv.next().unwrap_or_default();
        let path = environment.get(&OsString::from("PATH"));
        let program = surroundings::program(&name, &self.settings, path)?;
        Ok(Plan {
            program,
            args: argv.collect(),
            folder: surroundings::folder(&self.run, &self.settings)?,
            environment: environment.into_iter().collect(),
            input: input(&job.call.arguments),
            max_output: self.run.max_output_bytes,
        })
    }
}

fn input(arguments: &Map<String, Value>) -> Vec<u8> {
    serde_json::to_vec(arguments).unwrap_or_else(|_| b"{}".to_vec())
}

#[async_trait]
impl Executor for CommandTool {
    async fn prepare(&self, job: &Job) -> Result<Box<dyn Prepared>, NotStarted> {
        let plan = self.plan(job)?;
        let secrets = surroundings::secrets(&self.run, &plan.environment);
        let inner: Box<dyn Prepared> = match &self.settings.guard {
            Some(guard) => {
                let call = job.call.tool_call_id.clone();
                Box::new(guarded::Guarded::start(guard, plan, call).await?)
            }
            None => Box::new(direct::Direct::new(plan)),
        };
        Ok(Box::new(Discreet { inner, secrets }))
    }
}

/// A process whose words do not tell what it was trusted with.
struct Discreet {
    inner: Box<dyn Prepared>,
    secrets: Secrets,
}

#[async_trait]
impl Prepared for Discreet {
    fn process_group(&self) -> Option<i32> {
        self.inner.process_group()
    }

    async fn run(self: Box<Self>, deadline: Instant, cancel: CancellationToken) -> Ended {
        let ended = self.inner.run(deadline, cancel).await;
        self.secrets.ended(ended)
    }
}

/// A process to start.
struct Plan {
    program: PathBuf,
    args: Vec<String>,
    folder: PathBuf,
    environment: Vec<(OsString, OsString)>,
    input: Vec<u8>,
    max_output: u64,
}

impl Plan {
    /// A command in the tool's surroundings whose output is read here.
    fn command(&self, program: &PathBuf) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.folder);
        command.env_clear().envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

/// The streams of a process, and how much is kept of them.
struct Streams<O, E> {
    stdout: O,
    stderr: E,
    max_output: u64,
}

/// Reads the streams while `process` goes on, and judges them together.
async fn follow<O, E>(streams: Streams<O, E>, process: impl Future<Output = End>) -> Ended
where
    O: AsyncRead + std::os::fd::AsFd + Unpin,
    E: AsyncRead + std::os::fd::AsFd + Unpin,
{
    let over = CancellationToken::new();
    let process = async {
        // Cancelled on every way out, so that the readers cannot wait for ever.
        let _over = over.clone().drop_guard();
        process.await
    };
    let stdout = capture(streams.stdout, Keep::first(streams.max_output), &over);
    let stderr = capture(streams.stderr, Keep::last(ERRORS_KEPT), &over);
    let (end, output, errors) = tokio::join!(process, stdout, stderr);
    verdict(end, output, &errors)
}

fn too_late() -> NotStarted {
    let why = "the attempt's deadline passed before the tool could begin".to_owned();
    NotStarted { why, retryable: true }
}

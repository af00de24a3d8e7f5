//! A server's process, under a guard: it and all it starts end with this worker, however that ends.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as Pair;
use std::os::unix::process::CommandExt as _;
use std::process::{Command as StdCommand, Stdio};
use std::sync::Arc;
use std::time::Duration;

use definitions::mcp::{EnvValue, McpProcess};
use service_runtime::tasks::TaskSet;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::watch;
use tokio::time::timeout;

use super::super::NotStarted;
use super::super::command::{inherited, program_in};
use super::super::guard::wire::{Release, Report};
use super::super::guard::{SERVE, SUBCOMMAND};
use super::super::http::{Places, secret};
use super::super::settings::ExecutorSettings;

/// How long a guard may take to get ready, and to end a server.
const PATIENCE: Duration = Duration::from_secs(5);
/// What is kept of a server's standard error.
const ERRORS_KEPT: usize = 8 * 1024;

/// A process that is talked with.
pub(super) struct Process {
    guard: Child,
    /// The server lives until this is dropped.
    hold: OwnedWriteHalf,
    errors: Arc<watch::Sender<Vec<u8>>>,
    _reader: TaskSet,
}

/// What a server is started with: its environment, and the secrets in it.
pub(super) struct Surroundings {
    environment: BTreeMap<OsString, OsString>,
    pub(super) secrets: Vec<String>,
}

impl Surroundings {
    pub(super) fn of(process: &McpProcess, settings: &ExecutorSettings) -> Result<Self, String> {
        let mut environment = inherited(&settings.environment);
        let mut secrets = Vec::new();
        let places = Places {
            folder: settings.manifest_folder.clone(),
            environment: settings.environment.clone(),
        };
        for (name, value) in &process.env {
            let value = match value {
                EnvValue::Text(text) => text.clone(),
                EnvValue::Secret(from) => {
                    let secret = secret(from, &places)?;
                    secrets.push(secret.clone());
                    secret
                }
            };
            environment.insert(name.into(), value.into());
        }
        Ok(Self { environment, secrets })
    }
}

impl Process {
    /// Starts it; answers with the socket that it is talked with over.
    pub(super) async fn start(
        process: &McpProcess,
        around: &Surroundings,
        settings: &ExecutorSettings,
    ) -> Result<(Self, UnixStream), NotStarted> {
        if !process.folder.is_dir() {
            let why = format!("the server's folder `{}` is not there", process.folder.display());
            return Err(NotStarted { why, retryable: false });
        }
        let name = process.argv.first().map(String::as_str).unwrap_or_default();
        let path = around.environment.get(&OsString::from("PATH"));
        let program = program_in(name, settings, path)?;
        let Some(guard) = &settings.guard else {
            let why = "this worker has no guard to start a server under".to_owned();
            return Err(NotStarted { why, retryable: false });
        };
        let mut command = StdCommand::new(guard);
        command.args([SUBCOMMAND, SERVE]).arg(program).args(process.argv.iter().skip(1));
        command.current_dir(&process.folder).env_clear().envs(&around.environment);
        // A group of its own: a Ctrl-C in the worker's terminal is the worker's business.
        command.process_group(0);
        let started = spawn(command).map_err(|error| {
            let why = format!("the server's process could not be made: {error}");
            NotStarted { why, retryable: true }
        })?;
        Self::released(started).await
    }

    async fn released(started: Spawned) -> Result<(Self, UnixStream), NotStarted> {
        let Spawned { guard, errors, control, talk } = started;
        let (reports, mut hold) = control.into_split();
        let mut reports = BufReader::new(reports).lines();
        let silent =
            || NotStarted { why: "the server's guard does not answer".to_owned(), retryable: true };
        let ready = timeout(PATIENCE, reports.next_line()).await;
        match ready.ok().and_then(Result::ok).flatten().and_then(|line| Report::parse(&line)) {
            Some(Report::Ready(_)) => {}
            Some(Report::Refused { why, retryable }) => return Err(NotStarted { why, retryable }),
            Some(Report::Exited(_) | Report::Killed(_)) | None => return Err(silent()),
        }
        let release = Release { limit: Duration::MAX, input: Vec::new() };
        let sent = timeout(PATIENCE, hold.write_all(&release.encode())).await;
        if !matches!(sent, Ok(Ok(()))) {
            return Err(silent());
        }
        let kept = Arc::new(watch::Sender::new(Vec::new()));
        let mut reader = TaskSet::new();
        reader.start("read a server's errors", read(errors, Arc::clone(&kept)));
        Ok((Self { guard, hold, errors: kept, _reader: reader }, talk))
    }

    /// The end of what it wrote to standard error.
    pub(super) fn errors(&self) -> String {
        String::from_utf8_lossy(&self.errors.borrow()).trim().to_owned()
    }

    /// Ends it and all that it started; when this returns, nothing of it is left.
    pub(super) async fn end(self) {
        let Self { mut guard, hold, .. } = self;
        drop(hold);
        if timeout(PATIENCE, guard.wait()).await.is_err() {
            drop(guard.kill().await);
        }
    }
}

/// A guard that was started, with both of its sockets.
struct Spawned {
    guard: Child,
    errors: ChildStderr,
    control: UnixStream,
    talk: UnixStream,
}

fn spawn(mut command: StdCommand) -> io::Result<Spawned> {
    let ((control, its_control), (talk, its_talk)) = (Pair::pair()?, Pair::pair()?);
    command.stdin(OwnedFd::from(its_control)).stdout(OwnedFd::from(its_talk));
    command.stderr(Stdio::piped());
    let mut guard = Command::from(command).spawn()?;
    let errors = guard.stderr.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let ours = |socket: Pair| {
        socket.set_nonblocking(true)?;
        UnixStream::from_std(socket)
    };
    Ok(Spawned { guard, errors, control: ours(control)?, talk: ours(talk)? })
}

/// Reads to the end and keeps the last of it.
async fn read(mut errors: ChildStderr, kept: Arc<watch::Sender<Vec<u8>>>) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = errors.read(&mut buffer).await {
        let new = buffer.get(..count).unwrap_or_default();
        kept.send_modify(|kept| {
            kept.extend_from_slice(new);
            let surplus = kept.len().saturating_sub(ERRORS_KEPT);
            kept.drain(..surplus);
        });
    }
}

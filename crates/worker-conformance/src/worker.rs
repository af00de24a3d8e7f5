//! The worker that is looked at, as a process.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::bus::PARTITIONS;
use crate::server::{PASSWORD, USER};

/// Silent seconds after which a worker counts as gone.
pub(crate) const ACK_WAIT: Duration = Duration::from_secs(2);
/// How long work under way may take after SIGTERM.
pub(crate) const DRAIN: Duration = Duration::from_secs(5);
/// How much longer a process may take to be gone.
const LAST: Duration = Duration::from_secs(5);

/// What starts it.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    program: PathBuf,
    arguments: Vec<String>,
}

impl Subject {
    /// The command as it was given.
    pub(crate) fn new(words: &[String]) -> Result<Self> {
        let Some((program, arguments)) = words.split_first() else {
            bail!("say what starts the worker: cargo xtask worker-conformance -- CMD ARGUMENTS")
        };
        // A path is the caller's; a bare name is looked up in the PATH.
        let program = if program.contains('/') {
            std::path::absolute(program)?
        } else {
            PathBuf::from(program)
        };
        Ok(Self { program, arguments: arguments.to_vec() })
    }

    /// The same with one more word.
    pub(crate) fn with(&self, word: &str) -> Self {
        let mut more = self.clone();
        more.arguments.push(word.to_owned());
        more
    }

    /// Starts it. Its files lie in `folder`, its words go to `worker.log` there.
    pub(crate) fn start(&self, port: u16, folder: &Path) -> Result<Process> {
        let log = folder.join("worker.log");
        let log = std::fs::File::options().create(true).append(true).open(log)?;
        let child = Command::new(&self.program)
            .args(&self.arguments)
            .env_remove("SYSTOLE_REDIS")
            .env("PATH", path_without_systole())
            .env("SYSTOLE_NATS", format!("nats://127.0.0.1:{port}"))
            .env("SYSTOLE_NATS_USER", USER)
            .env("SYSTOLE_NATS_PASSWORD", PASSWORD)
            .env("SYSTOLE_PARTITIONS", PARTITIONS.to_string())
            .env("SYSTOLE_ACK_WAIT_S", ACK_WAIT.as_secs().to_string())
            .env("SYSTOLE_GRACE_S", DRAIN.as_secs().to_string())
            .env("SYSTOLE_SLOTS", "64")
            .env("SYSTOLE_CONFORMANCE_DIR", folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("{} cannot be started", self.program.display()))?;
        Ok(Process { child })
    }
}

/// A worker of another language needs no program of ours: none may be found by accident.
#[expect(clippy::disallowed_methods, reason = "the worker gets the PATH that the caller has")]
fn path_without_systole() -> std::ffi::OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).filter(|folder| !folder.join("systole").exists());
    std::env::join_paths(folders).unwrap_or_default()
}

/// A running worker; ended when it is dropped.
pub(crate) struct Process {
    child: Child,
}

impl Process {
    /// kill -9.
    pub(crate) async fn kill(&mut self) -> Result<()> {
        Ok(self.child.kill().await?)
    }

    /// SIGTERM.
    pub(crate) fn terminate(&self) -> Result<()> {
        let id = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        kill_process(id.context("the worker has ended by itself")?, Signal::TERM)?;
        Ok(())
    }

    /// How it ended, within what it may take.
    pub(crate) async fn ended(&mut self) -> Result<std::process::ExitStatus> {
        let ended = timeout(DRAIN.saturating_add(LAST), self.child.wait()).await;
        Ok(ended.context("the worker did not end")??)
    }
}

//! An attempt without a guard, for tests of other parts: it does not die with a worker that is
//! killed, and its process group is unknown before it begins.

use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{ExitStatus, Stdio};

use async_trait::async_trait;
use proto::observation::Receipt;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::super::guard::input_file;
use super::super::guard::wire::Report;
use super::super::{Ended, NotStarted, Output, Prepared};
use super::verdict::{End, Stop};
use super::{Plan, Streams, follow};

/// An attempt that is only a plan so far.
pub(super) struct Direct {
    plan: Plan,
}

impl Direct {
    pub(super) fn new(plan: Plan) -> Self {
        Self { plan }
    }

    fn spawn(&self) -> std::io::Result<Child> {
        let mut command = self.plan.command(&self.plan.program);
        command.args(&self.plan.args).process_group(0);
        command.stdin(Stdio::from(input_file(&self.plan.input)?));
        Command::from(command).spawn()
    }
}

#[async_trait]
impl Prepared for Direct {
    fn process_group(&self) -> Option<i32> {
        None
    }

    async fn run(self: Box<Self>, deadline: Instant, cancel: CancellationToken) -> Ended {
        if cancel.is_cancelled() {
            let receipt = Receipt::StoppedBeforeEffect;
            return Ended::Cancelled { output: Output::default(), receipt };
        }
        if Instant::now() >= deadline {
            return Ended::NotStarted(super::too_late());
        }
        let started =
            self.spawn().map(|mut child| (child.stdout.take(), child.stderr.take(), child));
        match started {
            Ok((Some(stdout), Some(stderr), child)) => {
                let streams = Streams { stdout, stderr, max_output: self.plan.max_output };
                follow(streams, conduct(child, deadline, cancel)).await
            }
            Ok(_) => Ended::NotStarted(broken()),
            Err(error) => refused(&error),
        }
    }
}

fn broken() -> NotStarted {
    NotStarted { why: "the tool's output cannot be read".to_owned(), retryable: true }
}

fn refused(error: &std::io::Error) -> Ended {
    let report = Report::refused("the tool could not be started", error);
    let end = End { stop: None, report: Some(report) };
    super::verdict::verdict(end, Output::default(), &Output::default())
}

async fn conduct(mut child: Child, deadline: Instant, cancel: CancellationToken) -> End {
    let group = KillOnDrop(child.id());
    let (stop, status) = tokio::select! {
        biased;
        status = child.wait() => (None, status.ok()),
        () = cancel.cancelled() => (Some(Stop::Cancelled), None),
        () = tokio::time::sleep_until(deadline) => (Some(Stop::Late), None),
    };
    drop(group);
    let status = match status {
        Some(status) => Some(status),
        None => child.wait().await.ok(),
    };
    End { stop, report: status.map(report) }
}

fn report(status: ExitStatus) -> Report {
    let killed = status.signal().map(Report::Killed);
    killed.or_else(|| status.code().map(Report::Exited)).unwrap_or(Report::Exited(-1))
}

/// Kills a process group when it goes out of scope.
struct KillOnDrop(Option<u32>);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let number = self.0.and_then(|number| i32::try_from(number).ok());
        if let Some(group) = number.and_then(Pid::from_raw) {
            kill_process_group(group, Signal::KILL).ok();
        }
    }
}

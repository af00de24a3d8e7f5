//! An attempt under a guard; see [`crate::executor::guard`].

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as Pair;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use proto::ids::ToolCallId;
use proto::observation::Receipt;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::super::group::kill_group;
use super::super::guard::wire::{Release, Report};
use super::super::guard::{SUBCOMMAND, WATCH};
use super::super::{Ended, NotStarted, Output, Prepared};
use super::verdict::{End, Stop};
use super::{Plan, Streams, follow};

/// How long a guard may take to get ready, and to end its attempt.
const PATIENCE: Duration = Duration::from_secs(5);

/// The guard's own limit lies behind the worker's, which knows better why the attempt ended.
const MARGIN: Duration = Duration::from_millis(250);

/// An attempt whose process group exists and waits. Dropping it closes the guard's socket, which
/// ends the group.
pub(super) struct Guarded {
    attempt: Attempt,
    streams: Streams<ChildStdout, ChildStderr>,
    input: Vec<u8>,
}

/// The guard and its socket.
struct Attempt {
    guard: Child,
    reports: Lines<BufReader<OwnedReadHalf>>,
    /// The guard lives until this is dropped.
    hold: OwnedWriteHalf,
    group: i32,
    call: ToolCallId,
}

impl Guarded {
    pub(super) async fn start(
        program: &PathBuf,
        plan: Plan,
        call: ToolCallId,
    ) -> Result<Self, NotStarted> {
        let (mut guard, socket) = spawn(program, &plan).map_err(|error| not_made(&error))?;
        let (Some(stdout), Some(stderr)) = (guard.stdout.take(), guard.stderr.take()) else {
            return Err(not_made(&io::ErrorKind::BrokenPipe.into()));
        };
        let (reports, hold) = socket.into_split();
        let mut reports = BufReader::new(reports).lines();
        let group = ready(&mut reports).await?;
        let attempt = Attempt { guard, reports, hold, group, call };
        let streams = Streams { stdout, stderr, max_output: plan.max_output };
        Ok(Self { attempt, streams, input: plan.input })
    }
}

fn spawn(program: &PathBuf, plan: &Plan) -> io::Result<(Child, UnixStream)> {
    let (ours, its) = Pair::pair()?;
    let mut command = plan.command(program);
    // A group of its own: a Ctrl-C in the worker's terminal is the worker's business.
    command.args([SUBCOMMAND, WATCH]).arg(&plan.program).args(&plan.args).process_group(0);
    command.stdin(OwnedFd::from(its));
    let guard = Command::from(command).spawn()?;
    ours.set_nonblocking(true)?;
    Ok((guard, UnixStream::from_std(ours)?))
}

fn not_made(error: &io::Error) -> NotStarted {
    match Report::refused("the tool's process could not be made", error) {
        Report::Refused { why, retryable } => NotStarted { why, retryable },
        Report::Ready(_) | Report::Exited(_) | Report::Killed(_) => silent(),
    }
}

fn silent() -> NotStarted {
    NotStarted { why: "the tool's guard process does not answer".to_owned(), retryable: true }
}

async fn ready(reports: &mut Lines<BufReader<OwnedReadHalf>>) -> Result<i32, NotStarted> {
    match timeout(PATIENCE, next(reports)).await {
        Ok(Some(Report::Ready(group))) => Ok(group),
        Ok(Some(Report::Refused { why, retryable })) => Err(NotStarted { why, retryable }),
        Ok(Some(Report::Exited(_) | Report::Killed(_)) | None) | Err(_) => Err(silent()),
    }
}

/// The next report; `None` when the guard is gone or says what no guard says.
async fn next(reports: &mut Lines<BufReader<OwnedReadHalf>>) -> Option<Report> {
    Report::parse(&reports.next_line().await.ok()??)
}

#[async_trait]
impl Prepared for Guarded {
    fn process_group(&self) -> Option<i32> {
        Some(self.attempt.group)
    }

    async fn run(self: Box<Self>, deadline: Instant, cancel: CancellationToken) -> Ended {
        let Self { attempt, streams, input } = *self;
        if cancel.is_cancelled() {
            attempt.end(None).await;
            let receipt = Receipt::StoppedBeforeEffect;
            return Ended::Cancelled { output: Output::default(), receipt };
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            attempt.end(None).await;
            return Ended::NotStarted(super::too_late());
        }
        let release = Release { limit: left.saturating_add(MARGIN), input };
        follow(streams, attempt.conduct(release, deadline, cancel)).await
    }
}

impl Attempt {
    /// Releases the tool and sees to its end.
    async fn conduct(
        mut self,
        release: Release,
        deadline: Instant,
        cancel: CancellationToken,
    ) -> End {
        let (hold, reports) = (&mut self.hold, &mut self.reports);
        let natural = async {
            // A guard that does not take it is gone, and says no more.
            hold.write_all(&release.encode()).await.ok()?;
            next(reports).await
        };
        let (stop, report) = tokio::select! {
            biased;
            report = natural => (None, report),
            () = cancel.cancelled() => (Some(Stop::Cancelled), None),
            () = tokio::time::sleep_until(deadline) => (Some(Stop::Late), None),
        };
        let report = self.end(report).await;
        // The guard's own limit may strike first when this process was held up.
        let was_late = stop.is_none()
            && Instant::now() >= deadline
            && matches!(report, Some(Report::Killed(KILL)));
        End { stop: if was_late { Some(Stop::Late) } else { stop }, report }
    }

    /// Ends the attempt, if it has not ended: closes the socket and waits for the guard's last word,
    /// if it is not there yet, and its end. A guard that does not do its work is put aside.
    async fn end(self, word: Option<Report>) -> Option<Report> {
        let Self { mut guard, mut reports, hold, group, call } = self;
        drop(hold);
        let last_word = async {
            let word = match word {
                Some(word) => Some(word),
                None => next(&mut reports).await,
            };
            let ended = guard.wait().await;
            word.filter(|_| ended.is_ok())
        };
        if let Ok(Some(report)) = timeout(PATIENCE, last_word).await {
            return Some(report);
        }
        drop(tokio::task::spawn_blocking(move || kill_group(group, &call)).await);
        drop(guard.kill().await);
        None
    }
}

const KILL: i32 = rustix::process::Signal::KILL.as_raw();

//! No process of an attempt outlives it, whoever ends.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use definitions::run::Run;
use proto::observation::Receipt;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tempfile::tempdir;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use worker::executor::group::{GroupFate, kill_group};
use worker::executor::{Ended, Executor, from_run};

use crate::support::*;

/// Begins a child and a grandchild, writes both numbers, and hangs, deaf to gentle signals.
const FAMILY: &str = "trap '' TERM INT HUP
    sh -c 'echo $$ > grandchild; sleep 1000' &
    echo $$ > child
    echo begun
    sleep 1000";

/// Both numbers, once both live.
async fn family(folder: &Path) -> [i32; 2] {
    [number_from(folder.join("child")).await, number_from(folder.join("grandchild")).await]
}

/// With and without a guard.
fn families(folder: &Path) -> [Arc<dyn Executor>; 2] {
    let run = Run::Command(command(&["sh", "-c", FAMILY]));
    [from_run(&run, &settings(folder)), from_run(&run, &without_guard(folder))]
}

#[tokio::test]
async fn at_its_deadline_a_tool_that_hangs_is_gone_with_its_children() {
    for which in [0, 1] {
        let folder = tempdir().unwrap();
        let tool = &families(folder.path())[which];
        let prepared = tool.prepare(&job(json!({}))).await.unwrap();
        let deadline = Instant::now() + Duration::from_millis(1500);
        let ended = prepared.run(deadline, CancellationToken::new()).await;
        assert_eq!(ended, Ended::TimedOut { output: output("begun\n") });
        assert!(Instant::now() >= deadline);
        family(folder.path()).await.into_iter().for_each(wait_until_gone);
    }
}

#[tokio::test]
async fn cancelled_while_it_runs_it_is_gone_with_its_children() {
    for which in [0, 1] {
        let folder = tempdir().unwrap();
        let tool = &families(folder.path())[which];
        let prepared = tool.prepare(&job(json!({}))).await.unwrap();
        let cancel = CancellationToken::new();
        let cancel_later = async {
            let processes = family(folder.path()).await;
            cancel.cancel();
            processes
        };
        let (ended, processes) =
            tokio::join!(prepared.run(soon_enough(), cancel.clone()), cancel_later);
        let receipt = Receipt::StoppedAfterEffectBegan;
        assert_eq!(ended, Ended::Cancelled { output: output("begun\n"), receipt });
        processes.into_iter().for_each(wait_until_gone);
    }
}

#[tokio::test]
async fn when_the_future_is_dropped_the_tool_is_gone_with_its_children() {
    for which in [0, 1] {
        let folder = tempdir().unwrap();
        let tool = &families(folder.path())[which];
        let prepared = tool.prepare(&job(json!({}))).await.unwrap();
        let processes = tokio::select! {
            ended = prepared.run(soon_enough(), CancellationToken::new()) => panic!("{ended:?}"),
            processes = family(folder.path()) => processes,
        };
        processes.into_iter().for_each(wait_until_gone);
    }
}

#[tokio::test]
async fn an_attempt_that_is_dropped_before_its_release_never_begins() {
    let folder = tempdir().unwrap();
    let prepared = script(folder.path(), "touch began").prepare(&job(json!({}))).await.unwrap();
    let group = prepared.process_group().unwrap();
    assert!(lives(group));
    drop(prepared);
    wait_until_gone(group);
    assert!(!folder.path().join("began").exists());
}

#[tokio::test]
async fn what_a_tool_leaves_behind_in_its_group_ends_with_it() {
    let folder = tempdir().unwrap();
    let ended = run(&script(folder.path(), "sleep 1000 & echo $!"), json!({})).await;
    let left: i32 = text(ended).trim().parse().unwrap();
    assert!(!lives(left));
}

#[tokio::test]
async fn a_process_that_leaves_the_group_lives_on_and_holds_nobody_up() {
    let folder = tempdir().unwrap();
    let daemon = "setsid sh -c 'echo $$ > daemon; exec sleep 1000' &
        until [ -s daemon ]; do :; done; echo started";
    let ended = run(&script(folder.path(), daemon), json!({})).await;
    let left = number_from(folder.path().join("daemon")).await;
    assert!(lives(left));
    kill(left, Signal::KILL);
    assert_eq!(ended, done("started\n"));
    wait_until_gone(left);
}

#[tokio::test]
async fn a_guard_that_is_killed_takes_the_tool_along() {
    let folder = tempdir().unwrap();
    let tool = script(folder.path(), &format!("echo $PPID > guard\n{FAMILY}"));
    let prepared = tool.prepare(&job(json!({}))).await.unwrap();
    let kill_guard = async {
        let processes = family(folder.path()).await;
        kill(number_from(folder.path().join("guard")).await, Signal::KILL);
        processes
    };
    let run = prepared.run(soon_enough(), CancellationToken::new());
    let (ended, processes) = tokio::join!(run, kill_guard);
    let why = "the tool's guard process was killed, and nothing on its standard error".to_owned();
    assert_eq!(ended, Ended::Crashed { output: output("begun\n"), why });
    processes.into_iter().for_each(wait_until_gone);
}

fn kill(process: i32, signal: Signal) {
    kill_process(Pid::from_raw(process).unwrap(), signal).unwrap();
}

/// Names the folder in which [`a_worker_for_other_tests_to_kill`] works.
const FOLDER: &str = "EXECUTORS_TEST_FOLDER";
/// Names its attempt's limit in milliseconds.
const LIMIT: &str = "EXECUTORS_TEST_LIMIT";

/// Not a test by itself: other tests start this program again with a folder set.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the only way to tell a test program what to do")]
async fn a_worker_for_other_tests_to_kill() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let limit = std::env::var(LIMIT).unwrap().parse().unwrap();
    let tool = script(Path::new(&folder), FAMILY);
    let prepared = tool.prepare(&job(json!({}))).await.unwrap();
    let deadline = Instant::now() + Duration::from_millis(limit);
    prepared.run(deadline, CancellationToken::new()).await;
}

/// The parent of a process.
fn parent(process: i32) -> i32 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    fields.split(' ').nth(1).unwrap().parse().unwrap()
}

/// Kills its process when the test fails.
struct Worker(Child);

impl Worker {
    fn start(folder: &Path, limit: Duration) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "deaths::a_worker_for_other_tests_to_kill"])
            .env(FOLDER, folder)
            .env(LIMIT, limit.as_millis().to_string())
            .stdout(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }

    fn signal(&self, signal: Signal) {
        kill(i32::try_from(self.0.id()).unwrap(), signal);
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[tokio::test]
async fn a_worker_that_is_killed_takes_tool_and_grandchild_along() {
    let folder = tempdir().unwrap();
    let worker = Worker::start(folder.path(), Duration::from_mins(10));
    let processes = family(folder.path()).await;
    assert!(processes.into_iter().all(lives));
    worker.signal(Signal::KILL);
    processes.into_iter().for_each(wait_until_gone);
}

#[tokio::test]
async fn a_worker_that_is_stopped_cannot_stretch_an_attempt() {
    let folder = tempdir().unwrap();
    let worker = Worker::start(folder.path(), Duration::from_millis(1500));
    let processes = family(folder.path()).await;
    worker.signal(Signal::STOP);
    processes.into_iter().for_each(wait_until_gone);
}

#[tokio::test]
async fn a_guard_that_is_killed_takes_the_tool_along_even_if_its_worker_cannot_act() {
    let folder = tempdir().unwrap();
    let worker = Worker::start(folder.path(), Duration::from_mins(10));
    let [child, grandchild] = family(folder.path()).await;
    worker.signal(Signal::STOP);
    kill(parent(child), Signal::KILL);
    wait_until_gone(child);
    // What is left is found by the group that was recorded.
    assert_eq!(kill_group(child, &CALL.parse().unwrap()), GroupFate::Killed);
    assert!(!lives(grandchild));
}

//! Starting, asking and stopping the service.

use std::fs;
use std::io;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::process::Command;
use tokio::time::{Instant, sleep};

use super::folder::Folder;

/// How long a service may take to start or to stop.
const PATIENCE: Duration = Duration::from_secs(8);
/// How long it may take to stop by itself.
const GENTLE: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How a new process begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Birth {
    /// Well.
    Sound,
    /// With a leak.
    Leaking,
    /// Not at all.
    Broken,
}

/// Starts a process of the service and waits until it answers for itself; answers with its pid.
pub(crate) async fn start(folder: &Folder, port: u16, birth: Birth) -> Result<u32, String> {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("systole").arg("demo-service").arg("--dir").arg(folder.root());
    command.args(["--port", &port.to_string()]);
    match birth {
        Birth::Sound => {}
        Birth::Leaking => drop(command.arg("--leak")),
        Birth::Broken => drop(command.arg("--broken")),
    }
    command.env_clear().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| format!("no new process: {error}"))?;
    let pid = child.id().ok_or("the new process ended at once")?;
    let latest = Instant::now() + PATIENCE;
    while Instant::now() < latest {
        if let Ok(Some(status)) = child.try_wait() {
            return Err(format!("the new process ended at once: {status}; see its log"));
        }
        if folder.pid().and_then(|pid| u32::try_from(pid).ok()) == Some(pid)
            && folder.url().is_some()
        {
            return Ok(pid);
        }
        sleep(LOOK_EVERY).await;
    }
    child.start_kill().unwrap_or_default();
    Err(format!("the new process was not ready within {} s", PATIENCE.as_secs()))
}

/// Ends every process of the service that works in this folder, whoever started it.
pub(crate) async fn stop_all(folder: &Folder) -> io::Result<()> {
    for pid in processes(folder) {
        stop(folder, pid).await?;
    }
    Ok(())
}

/// Ends one process: gently, then not.
pub(crate) async fn stop(folder: &Folder, pid: i32) -> io::Result<()> {
    for (signal, patience) in [(Signal::TERM, GENTLE), (Signal::KILL, PATIENCE)] {
        let Some(process) = Pid::from_raw(pid).filter(|_| is_ours(folder, pid)) else {
            return Ok(());
        };
        match kill_process(process, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(error) => return Err(error.into()),
        }
        let latest = Instant::now() + patience;
        while is_ours(folder, pid) && Instant::now() < latest {
            sleep(LOOK_EVERY).await;
        }
    }
    Ok(())
}

/// Living processes of the service in this folder.
fn processes(folder: &Folder) -> Vec<i32> {
    let Ok(all) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    numbers.filter(|pid| is_ours(folder, *pid)).collect()
}

/// Whether a living process is the service in this folder: numbers are used again. A dead one that
/// nobody has reaped has no command line.
pub(crate) fn is_ours(folder: &Folder, pid: i32) -> bool {
    let Ok(line) = fs::read(format!("/proc/{pid}/cmdline")) else { return false };
    let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
    let root = folder.root().as_os_str().as_encoded_bytes();
    words.get(1).is_some_and(|word| *word == b"demo-service") && words.contains(&root)
}

/// What a request came to: the status and the body.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

/// Asks the service; `None` when it does not answer.
pub(crate) async fn get(client: &reqwest::Client, folder: &Folder, path: &str) -> Option<Answer> {
    let url = format!("{}{path}", folder.url()?);
    let answer = client.get(url).send().await.ok()?;
    let status = answer.status().as_u16();
    let body = answer.json().await.unwrap_or(Value::Null);
    Some(Answer { status, body })
}

/// A client that does not wait long and asks nobody else.
pub(crate) fn client() -> Result<reqwest::Client, reqwest::Error> {
    reqwest::Client::builder().timeout(Duration::from_millis(800)).no_proxy().build()
}

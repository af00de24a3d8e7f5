//! The bench's own processes: started, weighed, and ended by their ids.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, Command};

use super::model::ModelClient;
use crate::failure::Failure;

/// The running program, even after its file was replaced.
pub(crate) const SELF: &str = "/proc/self/exe";
/// Ticks of a second in `/proc`, the same on every Linux.
const TICKS: f64 = 100.0;
/// No part takes longer.
const LONGEST: Duration = Duration::from_mins(3);

/// A command that says nothing and dies with whoever waits for it.
pub(crate) fn quiet(program: &str) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stdout(Stdio::null()).kill_on_drop(true);
    command
}

/// Waits for the end; kills it when that takes too long.
pub(crate) async fn bounded(child: &mut Child, longest: Duration) -> io::Result<ExitStatus> {
    if let Ok(ended) = tokio::time::timeout(longest, child.wait()).await {
        return ended;
    }
    child.kill().await?;
    Err(io::Error::new(io::ErrorKind::TimedOut, format!("no end within {longest:?}")))
}

/// The model in its process, which ends when this is dropped.
pub(crate) struct ModelProcess {
    child: Child,
    pub(crate) client: ModelClient,
}

#[derive(Deserialize)]
struct Announced {
    url: String,
}

impl ModelProcess {
    pub(crate) async fn start() -> Result<Self, Failure> {
        let failed = |error: io::Error| Failure::other("the bench's model", error);
        let mut command = quiet(SELF);
        command.args(["bench-model", "--port", "0"]);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(failed)?;
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut line).await.map_err(failed)?;
        }
        let announced: Announced = serde_json::from_str(&line)
            .map_err(|error| Failure::other("the bench's model did not start", error))?;
        Ok(Self { child, client: ModelClient::new(&announced.url)? })
    }

    /// Its process.
    pub(crate) fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Processor time that it has taken.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        self.child.id().map_or(0.0, cpu_seconds)
    }

    pub(crate) async fn stop(mut self) {
        if let Err(error) = self.child.kill().await {
            tracing::debug!(%error, "the bench's model had ended");
        }
    }
}

/// A process that ends when its standard input does, or when this is dropped.
pub(crate) struct Helper(Child);

impl Helper {
    /// Starts the program with these words.
    pub(crate) fn start(words: &[&str]) -> Result<Self, Failure> {
        let mut command = quiet(SELF);
        command.args(words).stdin(Stdio::piped());
        let child = command.spawn();
        child.map(Self).map_err(|error| Failure::other("a process of the bench", error))
    }

    pub(crate) async fn stop(mut self) {
        if let Err(error) = self.0.kill().await {
            tracing::debug!(%error, "a process of the bench had ended");
        }
    }
}

/// Runs one part in a process of its own; answers what it printed.
pub(crate) async fn part<T: DeserializeOwned>(
    store: &std::path::Path,
    words: &[String],
) -> Result<T, Failure> {
    let failed = |error: io::Error| Failure::other("a part of the bench", error);
    let mut command = quiet(SELF);
    command.arg("--store").arg(store).arg("bench-part").args(words).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    let mut printed = String::new();
    if let Some(mut output) = child.stdout.take() {
        let read = output.read_to_string(&mut printed);
        let read = tokio::time::timeout(LONGEST, read).await.map_err(io::Error::other);
        read.map_err(failed)?.map_err(failed)?;
    }
    let status = bounded(&mut child, LONGEST).await.map_err(failed)?;
    serde_json::from_str(&printed).map_err(|error| {
        Failure::other("a part of the bench", format!("{}: {status}, {error}", words.join(" ")))
    })
}

/// Processor time of a process, in and out of the kernel; zero when it is gone.
pub(crate) fn cpu_seconds(pid: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    cpu_of(&text).unwrap_or(0.0)
}

fn cpu_of(stat: &str) -> Option<f64> {
    // The name in parentheses may hold anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let ticks = |field: Option<&str>| field?.parse::<u32>().ok().map(f64::from);
    Some((ticks(fields.next())? + ticks(fields.next())?) / TICKS)
}

/// Memory of a process that is in use, in MB; zero when it is gone.
pub(crate) fn resident_mb(pid: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    resident_of(&text).unwrap_or(0.0)
}

fn resident_of(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u32 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(f64::from(kilobytes) / 1024.0)
}

/// Processes that are ready to run, averaged over the last minute.
pub(crate) fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_weighed_by_what_the_kernel_says() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 1 0 0 0 150 50 0 0 20 0 1 0 1 1 1";
        assert_eq!(cpu_of(stat), Some(2.0));
        assert_eq!(cpu_of("nothing"), None);
        let status = "Name:\tx\nVmHWM:\t  9999 kB\nVmRSS:\t   51200 kB\n";
        assert_eq!(resident_of(status), Some(50.0));
        assert!(resident_mb(std::process::id()) > 0.0);
    }
}

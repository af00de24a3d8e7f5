//! What runs: written down as it starts, so that `down` finds it, whatever became of `up`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

use crate::process::Stopwatch;
use crate::say;

const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long a process that was killed may take to be gone.
const LAST: Duration = Duration::from_secs(10);

/// A process that was started.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub(super) struct Running {
    pub(super) service: String,
    pub(super) pid: i32,
    /// When it began, in the kernel's ticks: numbers of processes are used again.
    pub(super) began: u64,
    pub(super) grace_ms: u64,
}

/// The file, in the order of starts.
#[derive(Debug)]
pub(super) struct Ledger {
    path: PathBuf,
    pub(super) all: Vec<Running>,
}

impl Ledger {
    /// What was written down; nothing if there is no file.
    pub(super) fn open(folder: &Path) -> Result<Self> {
        let path = folder.join("running.json");
        let all = match fs::read_to_string(&path) {
            Ok(text) => serde_json::from_str(&text)
                .with_context(|| format!("{}: not what `up` writes; delete it", path.display()))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error).with_context(|| path.display().to_string()),
        };
        Ok(Self { path, all })
    }

    /// Those that still live.
    pub(super) fn alive(&self) -> Vec<&Running> {
        self.all.iter().filter(|running| running.lives()).collect()
    }

    pub(super) fn add(&mut self, service: &str, pid: u32, grace: Duration) -> Result<()> {
        let pid = i32::try_from(pid)?;
        let began = began(pid).with_context(|| format!("{service} ended at once"))?;
        let grace_ms = u64::try_from(grace.as_millis())?;
        self.all.push(Running { service: service.to_owned(), pid, began, grace_ms });
        self.write()
    }

    fn write(&self) -> Result<()> {
        let text = serde_json::to_string_pretty(&self.all)?;
        // Written aside and renamed: `down` never reads half of it.
        let aside = self.path.with_extension("new");
        fs::write(&aside, text).with_context(|| aside.display().to_string())?;
        fs::rename(&aside, &self.path).with_context(|| self.path.display().to_string())
    }

    /// Stops all of it, last started first, each within its grace; after it nothing is left.
    pub(super) fn stop(&mut self) -> Result<()> {
        while let Some(running) = self.all.last() {
            running.stop()?;
            self.all.pop();
            self.write()?;
        }
        if self.path.exists() {
            fs::remove_file(&self.path).with_context(|| self.path.display().to_string())?;
        }
        Ok(())
    }
}

impl Running {
    fn lives(&self) -> bool {
        began(self.pid) == Some(self.began)
    }

    fn stop(&self) -> Result<()> {
        let patience = [(Signal::TERM, Duration::from_millis(self.grace_ms)), (Signal::KILL, LAST)];
        for (signal, patience) in patience {
            let Some(pid) = Pid::from_raw(self.pid).filter(|_| self.lives()) else { break };
            match kill_process(pid, signal) {
                Ok(()) | Err(rustix::io::Errno::SRCH) => {}
                Err(error) => return Err(error).with_context(|| format!("{self:?}")),
            }
            let watch = Stopwatch::start();
            while self.lives() && watch.elapsed() < patience {
                sleep(LOOK_EVERY);
            }
            if self.lives() {
                say(&format!("down: {} did not stop within its grace", self.service));
            }
        }
        anyhow::ensure!(!self.lives(), "{} (pid {}) cannot be stopped", self.service, self.pid);
        say(&format!("down: {} stopped", self.service));
        Ok(())
    }
}

/// When a living process began; a dead one that nobody has reaped is no process.
fn began(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may hold anything.
    let (_, fields) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split(' ').collect();
    if ["Z", "X"].contains(fields.first()?) {
        return None;
    }
    fields.get(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn what_was_written_down_is_stopped_and_a_reused_number_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let mut ledger = Ledger::open(folder.path()).unwrap();
        ledger.add("sleeper", child.id(), Duration::from_secs(5)).unwrap();
        let mut again = Ledger::open(folder.path()).unwrap();
        assert_eq!(again.all, ledger.all);
        again.all[0].began += 1;
        assert_eq!(again.alive(), Vec::<&Running>::new());
        again.stop().unwrap();
        assert_eq!(ledger.alive().len(), 1, "another process has the number");
        ledger.write().unwrap();
        Ledger::open(folder.path()).unwrap().stop().unwrap();
        assert_eq!(ledger.alive().len(), 0);
        assert!(!child.wait().unwrap().success());
        assert_eq!(Ledger::open(folder.path()).unwrap().all, []);
    }

    #[test]
    fn one_that_hears_no_signal_is_killed_after_its_grace() {
        let folder = tempfile::tempdir().unwrap();
        let script = "trap '' TERM; echo ready; exec sleep 600";
        let mut child = Command::new("sh")
            .args(["-c", script])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let ready = child.stdout.take().unwrap();
        io::BufRead::read_line(&mut io::BufReader::new(ready), &mut line).unwrap();
        let mut ledger = Ledger::open(folder.path()).unwrap();
        ledger.add("deaf", child.id(), Duration::from_millis(50)).unwrap();
        ledger.stop().unwrap();
        assert!(!child.wait().unwrap().success());
    }
}

//! A folder of its own with the program in it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use tokio::time::Instant;

/// How long anything may take.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// The program that Cargo built beside this test.
#[expect(clippy::disallowed_methods, reason = "a test may be pointed at another program")]
pub(crate) fn program() -> PathBuf {
    if let Some(path) = std::env::var_os("SYSTOLE_BIN") {
        return PathBuf::from(path);
    }
    let test = std::env::current_exe().unwrap();
    let path = test.parent().unwrap().parent().unwrap().join("systole");
    assert!(path.exists(), "{} is missing: cargo build --package systole", path.display());
    path
}

/// A folder that is gone after the test.
pub(crate) struct Home {
    folder: TempDir,
}

/// How the program ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ended {
    /// Standard output as lines of JSON.
    pub(crate) fn events(&self) -> Vec<Value> {
        let parse = |line: &str| {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
        };
        self.out.lines().map(parse).collect()
    }

    /// The last event.
    pub(crate) fn last(&self) -> Value {
        self.events().pop().unwrap_or_else(|| panic!("no event; {self:?}"))
    }

    /// The last event, which has to be the end of an answered run; answers with the answer.
    pub(crate) fn answer(&self) -> String {
        let last = self.last();
        assert_eq!(last["type"], "run_finished", "{self:?}");
        assert_eq!(last["outcome"], "answered", "{last}");
        assert_eq!(self.code, Some(0), "{}", self.err);
        last["answer"].as_str().unwrap().to_owned()
    }

    /// The observation of the only call of a tool.
    pub(crate) fn observation_of(&self, tool: &str) -> Value {
        let events = self.events();
        let call =
            events.iter().find(|event| event["type"] == "tool_call" && event["tool"] == tool);
        let asked =
            events.iter().find(|event| event["type"] == "approval_asked" && event["tool"] == tool);
        let id = &call.or(asked).unwrap_or_else(|| panic!("no call of {tool}: {}", self.out))["tool_call_id"];
        let is_its =
            |event: &&Value| event["type"] == "observation" && event["tool_call_id"] == *id;
        let mut observations = events.iter().filter(is_its);
        let first = observations.next().unwrap_or_else(|| panic!("no observation: {}", self.out));
        assert_eq!(observations.next(), None, "one observation per call");
        first.clone()
    }
}

impl Home {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.path().join(".systole/systole.db")
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).unwrap_or_default()
    }

    /// The program with arguments, in this folder, with a rehearsal that does not pause and without
    /// anything of the surroundings that could change what it does.
    pub(crate) fn command<A: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = A>,
    ) -> Command {
        let mut command = Command::new(program());
        command.args(arguments).current_dir(self.path());
        let path = std::env::split_paths("/usr/local/bin:/usr/bin:/bin");
        command.env_clear().env("PATH", std::env::join_paths(path).unwrap());
        command.env("HOME", self.path()).env("SYSTOLE_REHEARSAL_PACE", "0");
        // The usual address is one for all tests of this machine.
        command.env("SYSTOLE_LISTEN", "off");
        command.stdin(Stdio::null());
        command
    }

    /// Runs it to its end.
    pub(crate) fn run<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Ended {
        finish(self.command(arguments))
    }

    /// Starts it; its output goes to files.
    pub(crate) fn start<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Running {
        self.start_command(self.command(arguments))
    }

    /// Starts a command; its output goes to files.
    pub(crate) fn start_command(&self, mut command: Command) -> Running {
        let out = self.path().join(format!("out-{}", unique()));
        let err = out.with_extension("err");
        command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
        Running { child: command.spawn().unwrap(), out, err }
    }
}

fn unique() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Runs a command to its end, within patience.
pub(crate) fn finish(mut command: Command) -> Ended {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let read_err = thread::spawn(move || {
        let mut text = Vec::new();
        err.read_to_end(&mut text).unwrap();
        String::from_utf8_lossy(&text).into_owned()
    });
    let read_out = thread::spawn(move || {
        let mut text = Vec::new();
        out.read_to_end(&mut text).unwrap();
        String::from_utf8_lossy(&text).into_owned()
    });
    let code = wait(&mut child);
    Ended { code, out: read_out.join().unwrap(), err: read_err.join().unwrap() }
}

fn wait(child: &mut Child) -> Option<i32> {
    let latest = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        if Instant::now() > latest {
            child.kill().unwrap();
            panic!("the program did not end within {PATIENCE:?}");
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// The program while it runs.
pub(crate) struct Running {
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

impl Running {
    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    /// What it has printed so far.
    pub(crate) fn printed(&self) -> String {
        let bytes = fs::read(&self.out).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Waits until it has printed this.
    pub(crate) fn until_printed(&mut self, text: &str) {
        let printed = || self.printed().contains(text);
        until(&format!("`{text}` is printed"), printed);
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.pid()).unwrap(), signal).unwrap();
    }

    /// Ends it as a crash does; answers whether it was still alive.
    pub(crate) fn kill(mut self) -> bool {
        let alive = self.child.try_wait().unwrap().is_none();
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        alive
    }

    pub(crate) fn is_over(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Ended {
        let code = wait(&mut self.child);
        let err = fs::read_to_string(&self.err).unwrap_or_default();
        Ended { code, out: self.printed(), err }
    }

    /// The most memory it ever had, in bytes, as far as the system tells.
    pub(crate) fn most_memory(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).ok()?;
        let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
        let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
        Some(kilobytes * 1024)
    }
}

/// A test that fails leaves nothing running.
impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.child.kill().unwrap_or_default();
            self.child.wait().map(drop).unwrap_or_default();
        }
    }
}

/// Waits for a condition, within patience.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let latest = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < latest, "waited for {PATIENCE:?} until {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

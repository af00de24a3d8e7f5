//! What the demo keeps on disk. A run that was killed is found again by what lies here.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use proto::ids::ThreadId;
use proto::time::Timestamp;

use crate::arguments::Scenario;

/// The demo's folder.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    root: PathBuf,
}

impl Folder {
    pub(crate) fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Empties it.
    pub(crate) fn reset(&self) -> io::Result<()> {
        match fs::remove_dir_all(&self.root) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        fs::create_dir_all(self.root.join("out"))
    }

    /// Where the post-mortem appears.
    pub(crate) fn post_mortem(&self) -> PathBuf {
        self.root.join("out").join("postmortem.md")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.root.join("service.log")
    }

    /// Where the service listens, once it does.
    pub(crate) fn url(&self) -> Option<String> {
        self.read("service.url")
    }

    /// The service's process, as it says itself.
    pub(crate) fn pid(&self) -> Option<i32> {
        self.read("service.pid")?.parse().ok()
    }

    /// The service says where it is.
    pub(crate) fn announce(&self, url: &str, pid: u32) -> io::Result<()> {
        self.write("service.pid", &pid.to_string())?;
        self.write("service.url", url)
    }

    pub(crate) fn scenario(&self) -> Option<Scenario> {
        let word = self.read("scenario")?;
        [Scenario::Failing, Scenario::Healthy, Scenario::RestartFails]
            .into_iter()
            .find(|scenario| scenario.as_str() == word)
    }

    pub(crate) fn set_scenario(&self, scenario: Scenario) -> io::Result<()> {
        self.write("scenario", scenario.as_str())
    }

    /// The text that starts the run.
    pub(crate) fn alert(&self) -> Option<String> {
        self.read("alert.json")
    }

    /// All is prepared; from here on the same command goes on with this thread.
    pub(crate) fn prepared(&self, alert: &str, thread: ThreadId) -> io::Result<()> {
        self.write("alert.json", alert)?;
        self.write("thread", &thread.to_string())
    }

    /// The thread of a run that nobody has seen the end of.
    pub(crate) fn unreported(&self) -> Option<ThreadId> {
        if self.root.join("reported").exists() {
            return None;
        }
        self.read("thread")?.parse().ok()
    }

    /// Somebody has seen the end.
    pub(crate) fn reported(&self) -> io::Result<()> {
        self.write("reported", "")
    }

    /// An interrupt ended the service; whoever goes on starts it again.
    pub(crate) fn put_aside(&self) -> io::Result<()> {
        self.write("put-aside", "")
    }

    /// Whether an interrupt had ended the service; asked once.
    pub(crate) fn take_up(&self) -> bool {
        fs::remove_file(self.root.join("put-aside")).is_ok()
    }

    /// Whether the agent has begun to restart the service.
    pub(crate) fn was_restarted(&self) -> bool {
        let effects = self.read("effects.log").unwrap_or_default();
        effects.lines().any(|line| line.starts_with("restart "))
    }

    /// Writes down an effect before or while it happens; lines are never lost or mixed.
    pub(crate) fn effect(&self, what: &str, at: Timestamp) -> io::Result<()> {
        let mut file =
            OpenOptions::new().create(true).append(true).open(self.root.join("effects.log"))?;
        file.write_all(format!("{what} {at}\n").as_bytes())?;
        file.sync_data()
    }

    fn read(&self, name: &str) -> Option<String> {
        let text = fs::read_to_string(self.root.join(name)).ok()?;
        Some(text.trim_end().to_owned())
    }

    /// Written aside and renamed: nobody reads half a file.
    fn write(&self, name: &str, text: &str) -> io::Result<()> {
        let aside = self.root.join(format!("{name}.{}", std::process::id()));
        fs::write(&aside, text)?;
        fs::rename(aside, self.root.join(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prepared_run_is_found_until_it_was_reported() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::at(home.path().join("demo"));
        folder.reset().unwrap();
        assert_eq!(folder.unreported(), None);
        folder.set_scenario(Scenario::RestartFails).unwrap();
        let thread = ThreadId::from_parts(1, 2);
        folder.prepared("{}", thread).unwrap();
        assert_eq!(folder.unreported(), Some(thread));
        assert_eq!(folder.scenario(), Some(Scenario::RestartFails));
        folder.reported().unwrap();
        assert_eq!(folder.unreported(), None);
    }

    #[test]
    fn effects_are_added_line_by_line() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::at(home.path());
        folder.effect("start 7", Timestamp(1)).unwrap();
        folder.effect("restart abc", Timestamp(2)).unwrap();
        let text = fs::read_to_string(home.path().join("effects.log")).unwrap();
        assert_eq!(text, "start 7 1\nrestart abc 2\n");
    }
}

//! How programs are started: shown before they run, free of what Cargo told xtask itself.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::say;

/// A program about to run.
#[derive(Debug)]
pub struct Program {
    command: Command,
}

impl Program {
    /// Any program, by name or path.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        let mut command = Command::new(program);
        for name in leaked_names() {
            command.env_remove(name);
        }
        Self { command }
    }

    /// The Cargo that runs this xtask.
    pub fn cargo<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Self {
        let cargo = setting("CARGO").unwrap_or_else(|| OsString::from("cargo"));
        Self::new(cargo).args(args)
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.command.args(args);
        self
    }

    /// Sets the folder to run in.
    #[must_use]
    pub fn dir(mut self, dir: &Path) -> Self {
        self.command.current_dir(dir);
        self
    }

    /// Sets one environment variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Shows the command, runs it with our streams, fails unless it succeeds.
    pub fn run(mut self) -> Result<()> {
        say(&format!("$ {}", self.shown()));
        let shown = self.shown();
        let status = self.command.status().with_context(|| format!("cannot start `{shown}`"))?;
        if !status.success() {
            bail!("`{shown}` failed: {status}");
        }
        Ok(())
    }

    /// Runs quietly and returns what was printed and how it ended.
    pub fn output(mut self) -> Result<Output> {
        let shown = self.shown();
        let piped = self.command.stdin(Stdio::null()).output();
        piped.with_context(|| format!("cannot start `{shown}`"))
    }

    /// Runs quietly and returns standard output; fails, with standard error, unless it succeeds.
    pub fn read(self) -> Result<String> {
        let shown = self.shown();
        let output = self.output()?;
        if !output.status.success() {
            bail!("`{shown}` failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        String::from_utf8(output.stdout).with_context(|| format!("`{shown}` printed no UTF-8"))
    }

    fn shown(&self) -> String {
        let program = Path::new(self.command.get_program()).file_name().unwrap_or_default();
        let words = std::iter::once(program).chain(self.command.get_args());
        words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }
}

/// What `cargo run` tells xtask about the package xtask. Build scripts watch these names: passed
/// on, they make Cargo build the same crates again and again.
fn leaked_names() -> Vec<OsString> {
    names().into_iter().filter(|name| is_about_a_package(&name.to_string_lossy())).collect()
}

fn is_about_a_package(name: &str) -> bool {
    let starts = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_", "CARGO_PRIMARY_"];
    starts.iter().any(|start| name.starts_with(start))
}

#[expect(
    clippy::disallowed_methods,
    reason = "xtask is started by people and CI, not tested with it"
)]
fn names() -> Vec<OsString> {
    std::env::vars_os().map(|(name, _)| name).collect()
}

/// An environment variable, if it is set.
#[expect(
    clippy::disallowed_methods,
    reason = "xtask is started by people and CI, not tested with it"
)]
pub fn setting(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// Measures how long a step took.
#[derive(Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts to measure.
    #[expect(clippy::disallowed_methods, reason = "measures real builds; nothing is decided by it")]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// The time since the start.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_describe_a_package_are_kept_from_children() {
        assert!(is_about_a_package("CARGO_PKG_VERSION"));
        assert!(is_about_a_package("CARGO_MANIFEST_DIR"));
        assert!(!is_about_a_package("CARGO_TARGET_DIR"));
        assert!(!is_about_a_package("CARGO_HOME"));
    }

    #[test]
    fn a_program_that_fails_is_reported_with_its_words() {
        let error = Program::new("sh").args(["-c", "echo no luck >&2; exit 4"]).read().unwrap_err();
        assert_eq!(error.to_string(), "`sh -c echo no luck >&2; exit 4` failed: no luck");
    }
}

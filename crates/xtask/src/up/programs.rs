//! Which program of this machine stands for which image.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::house::House;
use crate::process::{Program, setting};
use crate::setup;

/// Where a program comes from.
enum Source {
    /// Built here.
    Built,
    /// Installed by `cargo xtask setup`.
    Pinned(setup::Pin),
    /// The system's; the package that brings it.
    System { program: &'static str, package: &'static str, needed: bool },
}

/// Image without tag, and what stands for it.
const IMAGES: [(&str, Source); 4] = [
    ("systole", Source::Built),
    ("nats", Source::Pinned(setup::NATS)),
    ("redis", Source::System { program: "redis-server", package: "redis-server", needed: true }),
    (
        "prom/prometheus",
        Source::System { program: "prometheus", package: "prometheus", needed: false },
    ),
];

/// The program for an image. `None` for one that may be absent and is.
pub(super) fn find(house: &House, image: &str, systole: Option<&Path>) -> Result<Option<PathBuf>> {
    let Some((_, source)) = IMAGES.iter().find(|(name, _)| *name == image) else {
        bail!(
            "no program stands for the image `{image}`: add one in crates/xtask/src/up/programs.rs"
        );
    };
    match source {
        Source::Built => systole.map_or_else(|| build(house), |path| Ok(path.to_owned())).map(Some),
        Source::Pinned(pin) => setup::find(house, *pin),
        Source::System { program, package, needed } => match on_path(program) {
            Some(path) => Ok(Some(path)),
            None if *needed => bail!(
                "there is no `{program}` on the PATH: install the system's package `{package}`, or \
                 run `cargo xtask setup`"
            ),
            None => Ok(None),
        },
    }
}

fn build(house: &House) -> Result<PathBuf> {
    Program::cargo(["build", "--package", "systole"]).dir(&house.root).run()?;
    Ok(house.target.join("debug/systole"))
}

/// A program by name.
pub(super) fn on_path(name: &str) -> Option<PathBuf> {
    let path = setting("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|path| path.is_file())
}

//! Seeded worlds: builds the crate `simulation` with optimisation and runs it.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::house::House;
use crate::process::Program;

/// Worlds per run: what CI runs and what a change has to survive.
pub const SEEDS: u64 = 10_000;

const PROGRAM: &str = "simulation";
const BUILD: [&str; 5] = ["build", "--release", "--package", PROGRAM, "--bins"];

/// Runs `seeds` worlds, or replays the one named by `seed`.
pub fn run(house: &House, seeds: u64, seed: Option<u64>) -> Result<()> {
    Program::cargo(BUILD).dir(&house.root).run()?;
    let which = match seed {
        Some(seed) => ["--seed".to_owned(), seed.to_string()],
        None => ["--seeds".to_owned(), seeds.to_string()],
    };
    Program::new(binary(house)).args(which).dir(&house.root).run()
}

/// Builds the simulation of another checkout in a target folder of its own: in a shared one the
/// programs of the two would pass for each other.
pub fn build_elsewhere(root: &Path, target: &Path) -> Result<PathBuf> {
    Program::cargo(BUILD).env("CARGO_TARGET_DIR", target).dir(root).run()?;
    Ok(target.join("release").join(PROGRAM))
}

fn binary(house: &House) -> PathBuf {
    house.scratch("release").join(PROGRAM)
}

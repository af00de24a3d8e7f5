//! Seeded worlds: builds the crate `simulation` with optimisation and runs it.

use std::path::PathBuf;

use anyhow::Result;

use crate::house::House;
use crate::process::Program;

/// Worlds per run: what CI runs and what a change has to survive.
pub const SEEDS: u64 = 10_000;

const BUILD: [&str; 5] = ["build", "--release", "--package", "simulation", "--bins"];

/// Runs `seeds` worlds, or replays the one named by `seed`.
pub fn run(house: &House, seeds: u64, seed: Option<u64>) -> Result<()> {
    Program::cargo(BUILD).dir(&house.root).run()?;
    let which = match seed {
        Some(seed) => ["--seed".to_owned(), seed.to_string()],
        None => ["--seeds".to_owned(), seeds.to_string()],
    };
    Program::new(binary(house)).args(which).dir(&house.root).run()
}

/// Builds the simulation of another checkout with the target folder of this one: crates from the
/// registry are shared, the workspace's own are told apart by their path.
pub fn build_elsewhere(house: &House, root: &std::path::Path) -> Result<PathBuf> {
    Program::cargo(BUILD).env("CARGO_TARGET_DIR", &house.target).dir(root).run()?;
    Ok(binary(house))
}

fn binary(house: &House) -> PathBuf {
    house.scratch("release").join("simulation")
}

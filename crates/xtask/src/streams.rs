//! Recorded streams: serves a folder of them over real HTTP and checks what the real client makes
//! of each.

use std::path::Path;

use anyhow::{Context as _, Result};

use crate::house::House;
use crate::process::Program;

const RUN: [&str; 7] =
    ["run", "--quiet", "--package", "model-openai", "--example", "streams", "--"];

/// Runs the cases of `folder` whose id holds one of `parts`, or all of them.
pub fn run(house: &House, folder: &Path, parts: &[String]) -> Result<()> {
    let folder = std::fs::canonicalize(folder)
        .with_context(|| format!("no folder of streams at {}", folder.display()))?;
    Program::cargo(RUN).args([folder]).args(parts).dir(&house.root).run()
}

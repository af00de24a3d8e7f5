//! What tests take from npm: the reference servers of MCP, and public descriptions of APIs.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde_json::{Map, Value, json};

use crate::house::House;
use crate::process::Program;
use crate::{complain, say};

/// Packages at one version.
const PINS: [(&str, &str); 4] = [
    ("@modelcontextprotocol/server-everything", "2026.8.31"),
    ("@modelcontextprotocol/server-filesystem", "2026.8.31"),
    // GitHub's description of its own API; MIT.
    ("@octokit/openapi", "23.0.2"),
    // Small descriptions with odd corners; MIT.
    ("@readme/oas-examples", "8.2.2"),
];

/// What is kept of GitHub's descriptions, which are many and large.
const KEPT: &str = "api.github.com.json";

/// Installs what is missing; says nothing when there is nothing to do. Where there is no npm, tests
/// that need it are skipped; in CI that is an error.
pub(super) fn run(house: &House) -> Result<()> {
    let folder = house.scratch("tools").join("npm");
    let receipt = folder.join("installed.json");
    let wanted = package().to_string();
    if fs::read_to_string(&receipt).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    say(&format!("setup: installing from npm into {}", folder.display()));
    match install(&folder, &wanted) {
        Ok(()) => fs::write(&receipt, wanted).with_context(|| receipt.display().to_string()),
        Err(error) if house.ci => Err(error),
        Err(error) => {
            complain(&format!("setup: skipped, npm could not install: {error:#}"));
            Ok(())
        }
    }
}

fn package() -> Value {
    let pins = PINS.iter().map(|(name, version)| ((*name).to_owned(), Value::from(*version)));
    json!({ "private": true, "dependencies": pins.collect::<Map<_, _>>() })
}

fn install(folder: &Path, package: &str) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    fs::write(folder.join("package.json"), package)?;
    // No package may run anything of its own while it is installed.
    let npm = Program::new("npm")
        .args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix"])
        .args([folder]);
    let output = npm.output().context("npm is needed")?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let descriptions = folder.join("node_modules/@octokit/openapi/generated");
    for entry in fs::read_dir(&descriptions).context("GitHub's descriptions")? {
        let path = entry?.path();
        if path.file_name().is_some_and(|name| name != KEPT) {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

//! One function per chore. All use the same profile and target folder, so nothing is built twice.

use anyhow::Result;

use crate::house::House;
use crate::process::{Program, Stopwatch};
use crate::{say, servers, setup, workers};

/// Checks the formatting, or repairs it.
pub fn fmt(house: &House, write: bool) -> Result<()> {
    let check: &[&str] = if write { &[] } else { &["--", "--check"] };
    Program::cargo(["fmt", "--all"]).args(check).dir(&house.root).run()
}

/// Clippy on everything. Warnings are denied by argument: `RUSTFLAGS` would start another cache.
pub fn lint(house: &House) -> Result<()> {
    Program::cargo(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])
        .dir(&house.root)
        .run()
}

/// Documentation of our own crates.
pub fn docs(house: &House) -> Result<()> {
    Program::cargo(["doc", "--workspace", "--no-deps"])
        .env("RUSTDOCFLAGS", "-D warnings")
        .dir(&house.root)
        .run()
}

/// Bans, licences, sources; then dependencies that nobody uses.
pub fn deny(house: &House) -> Result<()> {
    if let Some(deny) = setup::find(house, setup::DENY)? {
        // An exception that is no longer needed is an error: it would let the next one in unseen.
        let stale = ["unmatched-skip", "unnecessary-skip", "license-not-encountered"];
        let stale = stale.iter().flat_map(|lint| ["-D", lint]);
        Program::new(deny)
            .args(["--workspace", "check"])
            .args(stale)
            .args(["-A", "unused-wrapper", "--hide-inclusion-graph"])
            .args(["bans", "licenses", "sources"])
            .dir(&house.root)
            .run()?;
    }
    if let Some(shear) = setup::find(house, setup::SHEAR)? {
        Program::new(shear).args(["--deny-warnings"]).dir(&house.root).run()?;
    }
    Ok(())
}

/// Spelling of every file that belongs to the project.
pub fn typos(house: &House) -> Result<()> {
    match setup::find(house, setup::TYPOS)? {
        Some(typos) => Program::new(typos).dir(&house.root).run(),
        None => Ok(()),
    }
}

/// Every test of the workspace. The build covers all targets at once, so that the programs which
/// system tests start are there and nothing is built again with other features.
pub fn test(house: &House, rest: &[String]) -> Result<()> {
    let nextest = setup::find_or_fall_back(house, setup::NEXTEST);
    servers::find_or_skip(house);
    workers::find_or_skip(house)?;
    let mut parts = Vec::new();
    let mut timed = |name: &'static str, program: Program| -> Result<()> {
        let watch = Stopwatch::start();
        program.dir(&house.root).run()?;
        parts.push((name, watch.elapsed().as_secs_f64()));
        Ok(())
    };
    timed("build", Program::cargo(["build", "--workspace", "--bins", "--tests"]))?;
    if rest.is_empty() {
        timed("documentation tests", Program::cargo(["test", "--workspace", "--doc", "--quiet"]))?;
    }
    timed("tests", runner(nextest, rest))?;
    for (name, seconds) in parts {
        say(&format!("test: {name} passed in {seconds:.1} s"));
    }
    Ok(())
}

fn runner(nextest: Option<std::path::PathBuf>, rest: &[String]) -> Program {
    match nextest {
        Some(nextest) => Program::new(nextest).args(["nextest", "run", "--workspace"]).args(rest),
        None => {
            Program::cargo(["test", "--workspace", "--no-fail-fast", "--lib", "--bins", "--tests"])
                .args(rest)
        }
    }
}

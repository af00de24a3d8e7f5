//! Recorded streams: served over real HTTP to the real client, and as seeds of the fuzzer.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::house::House;
use crate::process::Program;
use crate::tidy::recorded::FOLDER;
use crate::{say, setup};

/// Built with the features of the whole workspace, as the tests are, so that nothing is built twice.
const BUILD: [&str; 5] = ["build", "--quiet", "--workspace", "--example", "streams"];
/// Seconds of fuzzing in `check`.
pub const FUZZ_SECONDS: u64 = 60;
const FUZZ_FOLDER: &str = "crates/model-openai/fuzz";
/// The longest input, and how long one may take, in seconds.
const FUZZ_LIMITS: [&str; 3] = ["-max_len=65536", "-timeout=10", "-rss_limit_mb=2048"];

/// Runs the cases of `folder` whose id holds one of `parts`, or all of them; without a folder the
/// repository's own.
pub fn run(house: &House, folder: Option<&Path>, parts: &[String]) -> Result<()> {
    let folder = folder.map_or_else(|| house.root.join(FOLDER), Path::to_path_buf);
    let folder = fs::canonicalize(&folder)
        .with_context(|| format!("no folder of streams at {}", folder.display()))?;
    Program::cargo(BUILD).dir(&house.root).run()?;
    let program = house.target.join("debug/examples/streams");
    Program::new(program).args([folder]).args(parts).dir(&house.root).run()
}

/// Feeds the reader with what coverage suggests, from the recordings on. A stable toolchain has no
/// sanitizers; the reader has no unsafe code for them to watch.
pub fn fuzz(house: &House, seconds: u64) -> Result<()> {
    let Some(cargo_fuzz) = setup::find(house, setup::FUZZ)? else { return Ok(()) };
    let found = house.scratch("fuzz-corpus");
    fs::create_dir_all(&found).with_context(|| found.display().to_string())?;
    say(&format!("fuzz: {seconds} s; new inputs go to {}", found.display()));
    Program::new(cargo_fuzz)
        .args(["fuzz", "run", "--sanitizer", "none", "--fuzz-dir", FUZZ_FOLDER, "--target-dir"])
        .args([house.scratch("fuzz")])
        .args(["reader"])
        .args([&found, &house.root.join(FOLDER)])
        .args(["--", &format!("-max_total_time={seconds}")])
        .args(FUZZ_LIMITS)
        .dir(&house.root)
        .run()
}

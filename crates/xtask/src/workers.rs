//! Workers of three languages, held against `proto/PROTOCOL.md`: their own tests, the rules of
//! `worker-conformance`, and workers that break one rule each.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::house::House;
use crate::process::{Program, Stopwatch, setting};
use crate::{complain, say, setup};

const PYTHON: &str = "sdk/python";
const TYPESCRIPT: &str = "sdk/typescript";
const RULES: &str = "crates/worker-conformance";

/// What was asked for.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// Only rules whose id holds one of these.
    pub only: Vec<String>,
    /// Workers that break one rule each.
    pub wrong: bool,
    /// Names the rules.
    pub list: bool,
    /// What starts the worker; our own three if there is nothing.
    pub command: Vec<String>,
}

/// Holds one worker, or our own three, against the rules.
pub fn run(house: &House, asked: &Asked) -> Result<()> {
    let Some(nats) = setup::find(house, setup::NATS)? else { return Ok(()) };
    Program::cargo(["build", "--quiet", "--package", "worker-conformance"])
        .dir(&house.root)
        .run()?;
    let hold = Hold { house, nats, only: asked.only.join(",") };
    if asked.list {
        return hold.program(&["--list"]).run();
    }
    if !asked.command.is_empty() {
        return hold.program(&["--"]).args(&asked.command).run();
    }
    if asked.wrong {
        return wrong(&hold);
    }
    all(&hold)
}

/// What `check` runs: everything but the wrong workers.
pub fn check(house: &House) -> Result<()> {
    run(house, &Asked::default())
}

/// The same and then the workers that break one rule each.
pub fn hunt(house: &House) -> Result<()> {
    run(house, &Asked { wrong: true, ..Asked::default() })
}

/// Installs and builds what tests start workers of other languages with.
pub fn find_or_skip(house: &House) -> Result<()> {
    python(house)?;
    typescript(house)?;
    Ok(())
}

struct Hold<'a> {
    house: &'a House,
    nats: PathBuf,
    only: String,
}

impl Hold<'_> {
    fn program(&self, arguments: &[&str]) -> Program {
        let program = self.house.target.join("debug/worker-conformance");
        let program = Program::new(program).env("SYSTOLE_NATS_SERVER", &self.nats);
        let only = if self.only.is_empty() { Vec::new() } else { vec!["--only", &self.only] };
        program.args(only).args(arguments).dir(&self.house.root)
    }
}

fn all(hold: &Hold<'_>) -> Result<()> {
    let house = hold.house;
    Program::cargo(["build", "--quiet", "--package", "systole"]).dir(&house.root).run()?;
    let watch = Stopwatch::start();
    let tools = house.root.join(RULES).join("rust/tools.yaml");
    let systole = house.target.join("debug/systole");
    let rust = hold.program(&["--"]).args([systole]).args(["worker", "--listen", "off", "--tools"]);
    rust.args([tools]).run()?;
    if let Some(python) = python(house)? {
        python.tests(house)?;
        let worker = house.root.join(PYTHON).join("examples/conformance.py");
        hold.program(&["--", "python3"]).args([worker]).env("PYTHONPATH", &python.path).run()?;
    }
    if let Some(node) = typescript(house)? {
        let program = Program::new("node").args(["--test", "dist/tests/"]).dir(&node);
        program.env("SYSTOLE_PROTO", house.root.join("proto")).run()?;
        let worker = node.join("dist/examples/conformance.js");
        hold.program(&["--", "node"]).args([worker]).run()?;
    }
    say(&format!("worker-conformance: passed in {:.1} s", watch.elapsed().as_secs_f64()));
    Ok(())
}

fn wrong(hold: &Hold<'_>) -> Result<()> {
    let Some(python) = python(hold.house)? else { return Ok(()) };
    let root = &hold.house.root;
    let worker = root.join(RULES).join("wrong/wrong.py");
    let mut path = python.path;
    path.push(":");
    path.push(root.join(PYTHON).join("examples"));
    hold.program(&["--wrong", "--", "python3"]).args([worker]).env("PYTHONPATH", path).run()
}

/// Where Python finds the SDK and what it needs.
struct Python {
    path: OsString,
}

impl Python {
    fn tests(&self, house: &House) -> Result<()> {
        let folder = house.root.join(PYTHON);
        let python = |arguments: &[&str]| {
            let program = Program::new("python3").args(arguments).dir(&folder);
            program.env("PYTHONPATH", &self.path).env("PYTHONDONTWRITEBYTECODE", "1")
        };
        python(&["-m", "unittest", "discover", "--quiet", "-s", "tests"]).run()?;
        let cache = house.scratch("sdk/mypy");
        let types = ["-m", "mypy", "--strict", "--python-version", "3.10"];
        let checked = ["systole", "examples", "tests"];
        python(&types).args(["--cache-dir"]).args([cache]).args(checked).run()
    }
}

/// Installs what the Python SDK is tested with, as `requirements.txt` pins it.
fn python(house: &House) -> Result<Option<Python>> {
    let (folder, sdk) = (house.scratch("sdk/python"), house.root.join(PYTHON));
    let requirements = sdk.join("requirements.txt");
    let pip = |folder: &Path| {
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"];
        let program = Program::new("python3").args(pip).args(["--no-input", "--target"]);
        program.args([folder]).args(["--requirement"]).args([&requirements]).read().map(drop)
    };
    if !is_installed(house, &folder, std::slice::from_ref(&requirements), pip)? {
        return Ok(None);
    }
    let mut path = folder.into_os_string();
    path.push(":");
    path.push(sdk);
    Ok(Some(Python { path }))
}

/// Installs what the TypeScript SDK is built with, as `package-lock.json` pins it, and builds it in a
/// folder of its own: nothing is written beside its sources.
fn typescript(house: &House) -> Result<Option<PathBuf>> {
    let (folder, sdk) = (house.scratch("sdk/typescript"), house.root.join(TYPESCRIPT));
    let pins = ["package.json", "package-lock.json"].map(|name| sdk.join(name));
    let npm = |folder: &Path| {
        for pin in &pins {
            fs::copy(pin, folder.join(pin.file_name().context("a file")?))?;
        }
        let npm = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
        Program::new("npm").args(npm).dir(folder).read().map(drop)
    };
    if !is_installed(house, &folder, &pins, npm)? {
        return Ok(None);
    }
    fs::copy(sdk.join("tsconfig.json"), folder.join("tsconfig.json"))?;
    for part in ["src", "examples", "tests"] {
        copy(&sdk.join(part), &folder.join(part))?;
    }
    if folder.join("dist").exists() {
        fs::remove_dir_all(folder.join("dist"))?;
    }
    let tsc = folder.join("node_modules/.bin/tsc");
    Program::new(tsc).args(["-p", "."]).dir(&folder).run()?;
    Ok(Some(folder))
}

/// Replaces the files of a folder; sources lie flat in theirs.
fn copy(from: &Path, to: &Path) -> Result<()> {
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

/// Makes sure that a folder was installed from these pins. `false`, with the reason said, where that is
/// not possible and a person is watching; in CI that is an error.
fn is_installed(
    house: &House,
    folder: &Path,
    pins: &[PathBuf],
    install: impl Fn(&Path) -> Result<()>,
) -> Result<bool> {
    let texts: Vec<String> = pins.iter().map(fs::read_to_string).collect::<Result<_, _>>()?;
    let (wanted, receipt) = (texts.concat(), folder.join("installed.txt"));
    if fs::read_to_string(&receipt).is_ok_and(|installed| installed == wanted) {
        return Ok(true);
    }
    say(&format!("worker-conformance: installing into {}", folder.display()));
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)?;
    match install(folder) {
        Ok(()) => fs::write(receipt, wanted)?,
        Err(error) if house.ci || setting("SYSTOLE_REQUIRE_SERVERS").is_some() => {
            bail!("{}: {error:#}", folder.display())
        }
        Err(error) => {
            complain(&format!("worker-conformance: skipped {}: {error:#}", folder.display()));
            return Ok(false);
        }
    }
    Ok(true)
}

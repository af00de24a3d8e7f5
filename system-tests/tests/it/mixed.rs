//! Workers of three languages on one deployment.

use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};
use testkit::servers::require_server;

use crate::deployment::{Deployment, nats_program, redis_program};
use crate::home::{Home, until};

/// The folder into which `cargo xtask test` builds the SDKs.
fn built(part: &str) -> Option<PathBuf> {
    let test = std::env::current_exe().ok()?;
    let mut places = test.ancestors().map(|dir| dir.join("sdk").join(part));
    places.find(|path| path.exists())
}

fn sdk(part: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../sdk").join(part)
}

/// What starts the clerk's tools in Python: the words, and where Python finds its packages.
fn python() -> Option<(Vec<String>, String)> {
    let packages = built("python").filter(|folder| folder.join("nats").exists());
    let packages = require_server("Python SDK", packages)?;
    let path = format!("{}:{}", packages.display(), sdk("python").display());
    let script = sdk("python/examples/clerk.py").display().to_string();
    Some((vec!["python3".to_owned(), script], path))
}

/// The same in TypeScript.
fn typescript() -> Option<Vec<String>> {
    let script = built("typescript/dist/examples/clerk.js");
    let script = require_server("TypeScript SDK", script)?;
    Some(vec!["node".to_owned(), script.display().to_string()])
}

#[test]
fn an_agent_has_its_calls_answered_by_a_python_and_a_typescript_worker() {
    let Some(program) = nats_program() else { return };
    let (Some((python, path)), Some(typescript)) = (python(), typescript()) else { return };
    let world = Deployment::start(program);
    let planner = world.planner("planner");
    planner.until_ready();
    let looks = world.foreign("python", &python, &["look"], &[("PYTHONPATH", &path)]);
    let books = world.foreign("typescript", &typescript, &["book"], &[]);
    let threads: Vec<String> = (0..6).map(|n| world.order(&format!("m{n}"))).collect();
    for (n, thread) in threads.iter().enumerate() {
        let ended = world.tail(thread);
        let last = ended.last();
        assert_eq!(last["outcome"], "answered", "{last}");
        for (tool, said) in [("look", format!("m{n} is free")), ("book", format!("booked m{n}"))] {
            let observation = ended.observation_of(tool);
            assert!(observation["code"].is_null(), "{observation}");
            assert_eq!(observation["content"], said);
        }
    }
    assert_eq!(world.booked(), (0..6).map(|n| format!("m{n}")).collect::<Vec<_>>());
    assert_eq!((looks.stop(), books.stop()), (Some(0), Some(0)));
    for (name, tool) in [("python", "look"), ("typescript", "book")] {
        let log = std::fs::read_to_string(world.home.path().join(format!("{name}.log"))).unwrap();
        let done = log.lines().filter(|line| line.ends_with(&format!(" of {tool}: ok")));
        assert_eq!(done.count(), 6, "{log}");
    }
}

#[test]
fn a_python_worker_that_dies_in_an_irreversible_call_breaks_no_promise() {
    let (Some(nats), Some(redis)) = (nats_program(), redis_program()) else { return };
    let Some((python, path)) = python() else { return };
    let home = Home::new();
    let words = ["drill", "--only", "other_worker/", "--threads", "4", "--kills", "2", "--json"];
    let mut command = home.command(words);
    command.env("SYSTOLE_NATS_SERVER", nats).env("SYSTOLE_REDIS_SERVER", redis);
    command.env("SYSTOLE_DRILL_WORKER", python.join(" ")).env("PYTHONPATH", path);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let cells: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    let [cell] = cells.as_slice() else { panic!("{cells:?}") };
    assert_eq!(cell["kills"], 2, "{cell}");
    assert!(cell["in_doubt"].as_u64().unwrap() >= 2, "{cell}");
    for broken in ["runs_lost", "effects_repeated", "claimed_in_vain"] {
        assert_eq!(cell[broken], 0, "{cell}");
    }
    assert_eq!(cell["violations"], serde_json::json!([]), "{cell}");
}

impl Deployment {
    /// Starts a worker that is no program of ours; it serves these tools in the deployment's folder.
    fn foreign(
        &self,
        name: &str,
        words: &[String],
        tools: &[&str],
        variables: &[(&str, &str)],
    ) -> Foreign {
        let log = self.home.path().join(format!("{name}.log"));
        let log = std::fs::File::create(log).unwrap();
        let mut command = std::process::Command::new(&words[0]);
        command.args(&words[1..]).args(tools).current_dir(self.home.path());
        command
            .env("SYSTOLE_NATS", self.nats.url())
            .env("SYSTOLE_PARTITIONS", "2")
            .envs(variables.iter().copied());
        command.stdin(std::process::Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        Foreign { child: command.spawn().unwrap() }
    }
}

/// Ended when it is dropped.
struct Foreign {
    child: std::process::Child,
}

impl Foreign {
    /// Asks for its end and waits for it; answers with its exit code.
    fn stop(mut self) -> Option<i32> {
        self.terminate();
        let mut code = None;
        until("the worker has stopped", || {
            code = self.child.try_wait().unwrap().map(|status| status.code());
            code.is_some()
        });
        code.flatten()
    }

    fn terminate(&self) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }
}

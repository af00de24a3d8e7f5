//! What docker-compose.yml says, started from programs of this machine as `cargo xtask up` does it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::Value;

use crate::deployment::{nats_program, redis_program};
use crate::home::program;

/// Every port of the file.
const PORTS: [u16; 9] = [4222, 6379, 7070, 7071, 7072, 7079, 7080, 8222, 9090];
const KEY: &str = "authorization: Bearer only-for-this-machine";

/// One deployment; taken down when dropped.
struct Compose {
    folder: tempfile::TempDir,
    offset: u16,
}

impl Compose {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), offset: free_offset() }
    }

    fn xtask(&self, words: &[&str]) -> Output {
        let xtask = program().with_file_name("xtask");
        assert!(xtask.exists(), "{} is missing: cargo build -p xtask", xtask.display());
        let mut command = Command::new(xtask);
        command.args(words).arg("--folder").arg(self.folder.path());
        command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR"))).output().unwrap()
    }

    fn up(&self) -> Output {
        let program = program();
        let offset = self.offset.to_string();
        self.xtask(&["up", "--systole", program.to_str().unwrap(), "--port-offset", &offset])
    }

    /// The processes that were written down.
    fn pids(&self) -> Vec<i64> {
        let text = fs::read_to_string(self.folder.path().join("running.json")).unwrap_or_default();
        let all: Vec<Value> = serde_json::from_str(&text).unwrap_or_default();
        all.iter().map(|running| running["pid"].as_i64().unwrap()).collect()
    }

    fn port(&self, port: u16) -> u16 {
        port + self.offset
    }

    /// A request to the gateway, as curl would send it; the answer's body stays open.
    fn ask(&self, line: &str, body: &str) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port(7070))).unwrap();
        stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        let request = format!(
            "{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{KEY}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        BufReader::new(stream)
    }
}

impl Drop for Compose {
    fn drop(&mut self) {
        drop(self.xtask(&["down"]));
    }
}

/// An offset at which every port is free, below the ports that the system gives out by itself.
fn free_offset() -> u16 {
    let first = u16::try_from(std::process::id() % 100).unwrap();
    let mut offsets = (0..100).map(|step| 10_000 + (first + step) % 100 * 100);
    let is_free = |offset: &u16| {
        let bound = PORTS.map(|port| TcpListener::bind(("127.0.0.1", port + offset)));
        bound.iter().all(Result::is_ok)
    };
    offsets.find(is_free).expect("free ports")
}

fn lives(pid: i64) -> bool {
    // A dead process that nobody has reaped has no command line.
    fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty())
}

fn both(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn servers() -> Option<(PathBuf, PathBuf)> {
    Some((nats_program()?, redis_program()?))
}

#[test]
fn what_compose_says_comes_up_answers_and_leaves_no_process() {
    if servers().is_none() {
        return;
    }
    let compose = Compose::new();
    let up = compose.up();
    assert!(up.status.success(), "{}", both(&up));
    let pids = compose.pids();
    assert!(pids.len() >= 7 && pids.iter().all(|pid| lives(*pid)), "{pids:?}\n{}", both(&up));

    let body = r#"{"agent": "ops", "input": {"text": "checkout answers 503"}}"#;
    let mut answer = String::new();
    compose.ask("POST /v1/threads", body).read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 201"), "{answer}");
    let thread: Value = serde_json::from_str(body).unwrap();
    let events = thread["events"].as_str().unwrap();
    let lines = compose.ask(&format!("GET {events}"), "").lines();
    let told: Vec<String> = lines
        .map(Result::unwrap)
        .filter_map(|line| line.strip_prefix("data: ").map(str::to_owned))
        .take_while(|data| !data.contains(r#""type":"run_finished""#))
        .collect();
    let all = told.join("\n");
    // Its tools found the service that compose runs beside the worker.
    assert!(all.contains("is already healthy: status"), "{all}");

    let again = compose.up();
    assert!(!again.status.success() && both(&again).contains("runs already"), "{}", both(&again));
    let down = compose.xtask(&["down"]);
    assert!(down.status.success(), "{}", both(&down));
    assert!(!both(&down).contains("did not stop"), "{}", both(&down));
    assert_eq!(pids.iter().filter(|pid| lives(**pid)).count(), 0, "{}", both(&down));
    assert!(both(&compose.xtask(&["down"])).contains("nothing runs"));
}

#[test]
fn a_port_that_is_taken_is_named_with_its_holder_and_nothing_is_started() {
    if servers().is_none() {
        return;
    }
    let compose = Compose::new();
    let port = compose.port(6379);
    let _mine = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let up = compose.up();
    let pid = std::process::id();
    let words = both(&up);
    assert!(!up.status.success(), "{words}");
    assert!(words.contains(&format!("port {port} of redis is taken by ")), "{words}");
    assert!(words.contains(&format!("(pid {pid})")), "{words}");
    assert_eq!(compose.pids(), Vec::<i64>::new());
}

#[test]
fn what_does_not_come_up_is_shown_and_takes_the_rest_with_it() {
    if servers().is_none() {
        return;
    }
    let compose = Compose::new();
    // Redis has no folder to write in.
    fs::create_dir_all(compose.folder.path().join("volumes")).unwrap();
    fs::create_dir_all(compose.folder.path().join("volumes/redis/appendonlydir/x")).unwrap();
    let spoilt = compose.folder.path().join("volumes/redis/appendonlydir/appendonly.aof.manifest");
    fs::write(spoilt, "no manifest\n").unwrap();
    let up = compose.up();
    let words = both(&up);
    assert!(!up.status.success(), "{words}");
    assert!(words.contains("redis ended"), "{words}");
    assert!(words.contains("manifest"), "the log's end is shown: {words}");
    assert_eq!(compose.pids(), Vec::<i64>::new());
}

//! A distributed deployment of one test: a NATS server, a rehearsed model, and processes of the
//! program, each on a free port.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use testkit::servers::{find_server, require_server};

use crate::home::{Ended, Home, until};

/// The bus's program, or `None` where there is none and none is required.
pub(crate) fn nats_program() -> Option<PathBuf> {
    require_server("nats-server", find_server("nats-server", "SYSTOLE_NATS_SERVER"))
}

/// Redis's program, or `None` where there is none and none is required.
pub(crate) fn redis_program() -> Option<PathBuf> {
    require_server("redis-server", find_server("redis-server", "SYSTOLE_REDIS_SERVER"))
}

/// A Redis server that keeps nothing on disk; stopped when dropped.
pub(crate) struct Redis {
    child: Child,
    port: u16,
}

impl Redis {
    pub(crate) fn start(home: &Home, program: &Path) -> Self {
        Self::start_with(home, program, &[])
    }

    /// The same with more words.
    pub(crate) fn start_with(home: &Home, program: &Path, more: &[&str]) -> Self {
        Self::start_at(home, program, free_port(), more)
    }

    /// The same where it stood before.
    pub(crate) fn start_at(home: &Home, program: &Path, port: u16, more: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
        command.arg("--dir").arg(home.path()).args(more).stdin(Stdio::null());
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        until("Redis takes connections", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Self { child, port }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// One command over the plain protocol; answers with the first line.
    pub(crate) fn say(&self, words: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream.write_all(format!("{words}\r\n").as_bytes()).unwrap();
        BufReader::new(stream).lines().next().unwrap().unwrap()
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A NATS server; stopped when dropped, started again on the same port and store.
pub(crate) struct Nats {
    program: PathBuf,
    config: PathBuf,
    port: u16,
    child: Option<Child>,
}

impl Nats {
    /// Starts one with more lines of configuration.
    pub(crate) fn start(home: &Home, program: PathBuf, more: &str) -> Self {
        let port = free_port();
        let store = home.path().join("nats");
        let lines = format!(
            "listen: \"127.0.0.1:{port}\"\njetstream {{ store_dir: \"{}\" }}\n{more}\n",
            store.display()
        );
        Self::with_lines(home, program, port, &lines)
    }

    /// One that keeps nothing.
    pub(crate) fn without_jetstream(home: &Home, program: PathBuf) -> Self {
        let port = free_port();
        Self::with_lines(home, program, port, &format!("listen: \"127.0.0.1:{port}\"\n"))
    }

    /// One with a whole configuration of its own, written for `port`.
    pub(crate) fn with_lines(home: &Home, program: PathBuf, port: u16, lines: &str) -> Self {
        home.write("nats.conf", lines);
        let config = home.path().join("nats.conf");
        let mut nats = Self { program, config, port, child: None };
        nats.run();
        nats
    }

    /// Starts it where it stood.
    pub(crate) fn run(&mut self) {
        let mut command = Command::new(&self.program);
        command.arg("-c").arg(&self.config).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        self.child = Some(command.spawn().unwrap());
        until("NATS takes connections", || TcpStream::connect(("127.0.0.1", self.port)).is_ok());
    }

    /// Ends it as a crash does.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// One request over the plain protocol; answers with what came back.
    pub(crate) fn ask(&self, subject: &str, body: &str) -> String {
        ask_at(self.port, subject, body)
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }
}

/// A request to the server at a port, with the answer to it.
pub(crate) fn ask_at(port: u16, subject: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let request = format!(
        "CONNECT {{\"verbose\":false}}\r\nSUB answers 1\r\nPUB {subject} answers {}\r\n{body}\r\n",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut lines = BufReader::new(stream).lines();
    lines.find(|line| line.as_ref().unwrap().starts_with("MSG answers")).unwrap().unwrap();
    lines.next().unwrap().unwrap()
}

impl Drop for Nats {
    fn drop(&mut self) {
        self.kill();
    }
}

pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A process that serves, with the address it printed.
pub(crate) struct Node {
    child: Child,
    address: String,
    name: String,
}

impl Node {
    /// Starts a command and reads where it listens.
    pub(crate) fn start(home: &Home, name: &str, words: &[&str]) -> Self {
        Self::start_command(home, name, home.command(words))
    }

    fn start_command(home: &Home, name: &str, mut command: Command) -> Self {
        let log = home.path().join(format!("{name}.log"));
        let log = fs::File::options().create(true).append(true).open(log).unwrap();
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on http://");
        let address = address.unwrap_or_else(|| panic!("{name} printed {line:?}"));
        let address = address.trim_end_matches("/v1").to_owned();
        Self { child, address, name: name.to_owned() }
    }

    /// What it answers to a request: status and body.
    pub(crate) fn get(&self, path: &str) -> Option<(u16, String)> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
        let request = format!("GET {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let status = answer.split(' ').nth(1)?.parse().ok()?;
        Some((status, answer.split_once("\r\n\r\n")?.1.to_owned()))
    }

    /// The value of a metric with these labels, out of `/metrics`; every line is held against the
    /// format.
    pub(crate) fn metric(&self, name: &str, labels: &[&str]) -> Option<f64> {
        let (status, text) = self.get("/metrics")?;
        assert_eq!(status, 200, "{text}");
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        let parsed: Vec<(String, f64)> = samples.map(sample).collect();
        let is_it = |series: &str| {
            let (found, rest) = series.split_once('{').unwrap_or((series, ""));
            found == name && labels.iter().all(|label| rest.contains(label))
        };
        parsed.into_iter().find(|(series, _)| is_it(series)).map(|(_, value)| value)
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Waits until it works.
    pub(crate) fn until_ready(&self) {
        let ready = || self.get("/readyz").is_some_and(|(status, _)| status == 200);
        until(&format!("{} is ready", self.name), ready);
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Waits until it has been ended by a signal, as by a kill point.
    pub(crate) fn until_killed(&mut self) {
        let mut code = Some(0);
        until(&format!("{} is killed", self.name), || {
            self.child.try_wait().unwrap().is_some_and(|status| {
                code = status.code();
                true
            })
        });
        assert_eq!(code, None, "{} ended by itself", self.name);
    }

    /// Ends it as a crash does.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    /// Asks for its end and waits for it; answers with its exit code.
    pub(crate) fn stop(mut self) -> Option<i32> {
        self.signal(Signal::TERM);
        let mut code = None;
        until(&format!("{} has stopped", self.name), || {
            code = self.child.try_wait().unwrap().map(|status| status.code());
            code.is_some()
        });
        code.flatten()
    }
}

/// `name{labels} value`.
fn sample(line: &str) -> (String, f64) {
    let (series, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no sample: {line}"));
    let value = value.parse().unwrap_or_else(|error| panic!("{error}: {line}"));
    assert!(series.starts_with("systole_"), "{line}");
    (series.to_owned(), value)
}

impl Drop for Node {
    fn drop(&mut self) {
        // A child that has ended is not killed a second time: its id may be another's.
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }
}

/// Servers and files; the processes are started by the test.
pub(crate) struct Deployment {
    pub(crate) home: Home,
    pub(crate) nats: Nats,
    pub(crate) model: Node,
    /// Absent: there is no working memory.
    pub(crate) redis: Option<Redis>,
}

/// The agent orders what it is told: it looks first, then books, which must not happen twice.
const AGENT: &str = "name: clerk\nrole: You book what you are told.\nmodel: rehearsal\n\
                     tools: [look, book, sign]\n";

const REHEARSAL: &str = "\
rules:
  - when: { last: user, user_matches: 'sign (\\w+)' }
    say: I sign it, if I may.
    calls: [{ tool: sign, arguments: { order: '{{user.1}}' } }]
  - when: { called: [sign] }
    say: 'Done: {{observed.sign|unknown}}'
  - when: { last: user, user_matches: 'order (\\w+)' }
    say: I look first.
    calls: [{ tool: look, arguments: { order: '{{user.1}}' } }]
  - when: { called: [look], not_called: [book], user_matches: 'order (\\w+)' }
    say: I book it.
    calls: [{ tool: book, arguments: { order: '{{user.1}}' } }]
  - when: { called: [book] }
    say: 'Done: {{observed.book|unknown}}'
";

/// Each booking is a line that the tool itself appends.
const TOOLS: &str = "\
tools:
  - name: look
    description: Looks whether an order can be booked at this moment.
    parameters: { order: { type: string, required: true, description: Which order. } }
    effect: read_only
    timeout_ms: 5000
    run: { command: [/bin/sh, -c, 'sleep 0.05; echo \"$0 is free\"', '{order}'] }
  - name: book
    description: Books an order for good; it cannot be taken back.
    parameters: { order: { type: string, required: true, description: Which order. } }
    effect: irreversible
    timeout_ms: 5000
    run: { command: [/bin/sh, -c, 'echo \"$0\" >> effects.log; sleep 0.5; echo \"booked $0\"', '{order}'] }
  - name: sign
    description: Signs an order for good; a person has to agree.
    parameters: { order: { type: string, required: true, description: Which order. } }
    effect: irreversible
    approval: always
    timeout_ms: 5000
    run: { command: [/bin/sh, -c, 'echo \"$0\" >> effects.log; echo \"signed $0\"', '{order}'] }
";

impl Deployment {
    /// A server and a model.
    pub(crate) fn start(program: PathBuf) -> Self {
        Self::over(program, "", "")
    }

    /// The same over a server with further settings of JetStream and further lines.
    pub(crate) fn over(program: PathBuf, block: &str, more: &str) -> Self {
        let home = Home::new();
        home.write("agents/clerk/agent.yaml", AGENT);
        home.write("rehearsal.yaml", REHEARSAL);
        home.write("tools.yaml", TOOLS);
        Self::open(home, program, block, more)
    }

    /// A deployment of the files in `home`.
    pub(crate) fn open(home: Home, program: PathBuf, block: &str, more: &str) -> Self {
        let port = free_port();
        let store = home.path().join("nats");
        let lines = format!(
            "listen: \"127.0.0.1:{port}\"\njetstream {{ store_dir: \"{}\", {block} }}\n{more}\n",
            store.display()
        );
        let nats = Nats::with_lines(&home, program, port, &lines);
        let words = ["rehearse", "serve", "rehearsal.yaml", "--listen", "127.0.0.1:0"];
        let model = Node::start(&home, "model", &words);
        Self { home, nats, model, redis: None }
    }

    /// The same with working memory.
    pub(crate) fn with_redis(program: PathBuf, redis: &Path) -> Self {
        let world = Self::start(program);
        let redis = Some(Redis::start(&world.home, redis));
        Self { redis, ..world }
    }

    /// A planner of its own.
    pub(crate) fn planner(&self, name: &str) -> Node {
        let (nats, model) = (self.nats.url(), self.model.url());
        let words = ["planner", "--agents", "agents", "--base-url", &model, "--nats", &nats];
        self.node(name, &words)
    }

    fn node(&self, name: &str, words: &[&str]) -> Node {
        self.node_that_ends(name, words, "")
    }

    /// A node that is killed at a point, if one is named.
    fn node_that_ends(&self, name: &str, words: &[&str], point: &str) -> Node {
        let redis = self.redis.as_ref().map(Redis::url);
        let more: Vec<&str> = redis.iter().flat_map(|url| ["--redis", url]).collect();
        let mut command = self.home.command([words, &COMMON, &STREAMS, &more].concat());
        command.env("SYSTOLE_KILL_POINT", point);
        Node::start_command(&self.home, name, command)
    }

    /// A planner that is killed at a point.
    pub(crate) fn planner_that_ends(&self, point: &str) -> Node {
        let (nats, model) = (self.nats.url(), self.model.url());
        let words = ["planner", "--agents", "agents", "--base-url", &model, "--nats", &nats];
        self.node_that_ends(&format!("planner-{point}"), &words, point)
    }

    /// A gateway that is killed at a point.
    pub(crate) fn gateway_that_ends(&self, point: &str) -> Node {
        let nats = self.nats.url();
        self.node_that_ends(&format!("gateway-{point}"), &["gateway", "--nats", &nats], point)
    }

    /// A process that is several parts of the deployment, with the agent, the tools and the
    /// rehearsal of this home.
    pub(crate) fn joined(&self, name: &str, roles: &[&str]) -> Node {
        self.home.write("agent.yaml", AGENT);
        let nats = self.nats.url();
        self.node(name, &[&["dev", "agent.yaml", "--nats", &nats][..], roles].concat())
    }

    /// A worker of its own.
    pub(crate) fn worker(&self, name: &str) -> Node {
        let nats = self.nats.url();
        self.node(name, &["worker", "--tools", "tools.yaml", "--nats", &nats])
    }

    /// A gateway of its own.
    pub(crate) fn gateway(&self, name: &str) -> Node {
        let nats = self.nats.url();
        self.node(name, &["gateway", "--nats", &nats])
    }

    /// Sends an order to a thread of its own; answers with its id.
    pub(crate) fn order(&self, name: &str) -> String {
        let ended = self.send(&format!("order {name}"));
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        ended.out.trim().to_owned()
    }

    /// Sends words to a thread of its own.
    pub(crate) fn send(&self, words: &str) -> Ended {
        let nats = self.nats.url();
        self.home
            .run([&["send", words, "--agent", "clerk", "--nats", &nats][..], &STREAMS].concat())
    }

    /// Waits for the end of a thread's run; answers with all events.
    pub(crate) fn tail(&self, thread: &str) -> Ended {
        let nats = self.nats.url();
        self.home.run([&["tail", thread, "--json", "--nats", &nats][..], &STREAMS].concat())
    }

    /// The orders that were booked, sorted.
    pub(crate) fn booked(&self) -> Vec<String> {
        let mut lines: Vec<String> =
            self.home.read("effects.log").lines().map(str::to_owned).collect();
        lines.sort();
        lines
    }
}

/// Threads lie on two streams, as every process has to agree.
const STREAMS: [&str; 2] = ["--partitions", "2"];

const COMMON: [&str; 6] = ["--listen", "127.0.0.1:0", "--ack-wait-s", "2", "--grace-s", "10"];

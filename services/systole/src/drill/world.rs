//! The processes of one cell.

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use proto::ids::ThreadRef;
use proto::subject::{Leaf, Subject};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

use super::cells::{Hit, Role};
use super::servers::{Programs, Server};
use crate::failure::Failure;
use crate::nodes::kill::{self, KillPoint};
use crate::nodes::settings::{BusLogin, BusSettings, RedisSettings};
use crate::nodes::skew;

/// The running program, even after its file was replaced.
const SELF: &str = "/proc/self/exe";
/// How long a process may take to be ready.
const READY: Duration = Duration::from_mins(2);
/// After how many silent seconds a process of the drill counts as gone.
pub(crate) const ACK_WAIT: Duration = Duration::from_secs(2);
/// The same on a cluster, as it is without a setting.
const CLUSTER_ACK_WAIT: Duration = Duration::from_secs(6);
/// When the first word of a model that takes its time comes.
const FIRST_WORD: Duration = Duration::from_secs(2);
/// The signal of `kill -9`.
const KILLED: i32 = 9;
/// The command of the model.
const MODEL: [&str; 5] = ["rehearse", "serve", "rehearsal.yaml", "--listen", "127.0.0.1:0"];

const AGENT: &str = "name: clerk\nrole: You book what you are told.\nmodel: rehearsal\n\
                     tools: [look, book, sign, peek, turn]\n";

const AGENT_FILE: &str = "agents/clerk/agent.yaml";

const REHEARSAL: &str = "\
rules:
  - when: { last: user, user_matches: 'pin (\\w+)' }
    say: I book it with the server.
    calls: [{ tool: pin, arguments: { order: '{{user.1}}' } }]
  - when: { last: user, user_matches: 'hold (\\w+)' }
    say: I book it at once.
    calls: [{ tool: book, arguments: { order: '{{user.1}}' } }]
  - when: { last: user, user_matches: 'sign (\\w+)' }
    say: I sign it, if I may.
    calls: [{ tool: sign, arguments: { order: '{{user.1}}' } }]
  - when: { last: user, user_matches: 'peek (\\w+)' }
    say: I look at what all look at.
    calls: [{ tool: peek, arguments: { what: gate } }]
  - when: { last: user, user_matches: 'turn (\\w+)' }
    say: I turn what all turn.
    calls: [{ tool: turn, arguments: { what: gate, order: '{{user.1}}' } }]
  - when: { last: user, user_matches: 'order (\\w+)' }
    say: I look first.
    calls: [{ tool: look, arguments: { order: '{{user.1}}' } }]
  - when: { called: [look], not_called: [book], user_matches: 'order (\\w+)' }
    say: I book it.
    calls: [{ tool: book, arguments: { order: '{{user.1}}' } }]
  - when: { last: tool }
    say: 'Done: {{observed.book|unknown}}'
";

/// Each booking is a line that the tool itself appends.
const TOOLS: &str = "\
tools:
  - name: look
    description: Looks whether an order can be booked at this moment.
    parameters: { order: { type: string, required: true, description: Which order. } }
    effect: read_only
    timeout_ms: 2000
    run: { command: [/bin/sh, -c, 'echo \"$0 is free\"', '{order}'] }
  - name: book
    description: Books an order for good; it cannot be taken back.
    parameters: { order: { type: string, required: true, description: Which order. } }
    effect: irreversible
    timeout_ms: 2000
    run: { command: [/bin/sh, -c, 'echo \"$0\" >> effects.log; sleep 0.4; echo \"booked $0\"', '{order}'] }
  - name: sign
    description: Books an order that a person has to agree to; it cannot be taken back.
    parameters: { order: { type: string, required: true, description: Which order. } }
    effect: irreversible
    approval: always
    timeout_ms: 2000
    run: { command: [/bin/sh, -c, 'echo \"$0\" >> effects.log; sleep 0.4; echo \"booked $0\"', '{order}'] }
  - name: peek
    description: Looks at something that all look at; slow, so one look serves all.
    parameters: { what: { type: string, required: true, description: What. } }
    effect: read_only
    cache_ttl_ms: 60000
    timeout_ms: 5000
    run: { command: [/bin/sh, -c, 'echo \"$0\" >> peeks.log; sleep 1; echo \"$0 is shut\"', '{what}'] }
  - name: turn
    description: Turns something that only one may turn at a time; it cannot be taken back.
    parameters:
      what: { type: string, required: true, description: What. }
      order: { type: string, required: true, description: For which order. }
    effect: irreversible
    resource: 'turning/{what}'
    start_timeout_ms: 180000
    timeout_ms: 2000
    run:
      command:
        - /bin/sh
        - -c
        - 'mkdir turning || echo \"$0\" >> overlaps.log; echo \"$0\" >> effects.log; sleep 0.2; rmdir turning; echo \"turned $0\"'
        - '{order}'
";

/// What is added to the tools when an MCP server brings one.
const SERVER: &str = "\
sources:
  - mcp: { command: [systole, demo-tool, mcp], instances: 4 }
    tools:
      pin:
        effect: irreversible
        timeout_ms: 8000
";

/// The rehearsal of a model that takes about so long for its few words. They come one by one: a model
/// that says nothing for half a minute is given up.
fn slowly(takes: Duration) -> String {
    let rest = takes.saturating_sub(FIRST_WORD).max(FIRST_WORD);
    let pace = 12.0 / rest.as_secs_f64();
    let first = FIRST_WORD.as_millis();
    format!(
        "pace: {{ tokens_per_second: {pace:.3}, first_token_ms: {first} }}\nrules:\n  \
         - say: one two three four five six seven eight nine ten eleven twelve\n"
    )
}

/// A process to start.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) role: Role,
    /// Its kill point.
    pub(crate) arming: Option<String>,
    /// The port of a line that it reaches NATS over.
    pub(crate) line: Option<u16>,
    /// By how many seconds its clock is ahead.
    pub(crate) ahead_s: i64,
}

impl Wanted {
    /// One that nothing is done to.
    pub(crate) fn of(role: Role) -> Self {
        Self { role, arming: None, line: None, ahead_s: 0 }
    }
}

/// Servers, a rehearsed model and a folder; the processes are started by the row.
pub(crate) struct World {
    pub(crate) folder: PathBuf,
    pub(crate) nats: Vec<Server>,
    pub(crate) redis: Server,
    model: Node,
    ack_wait: Duration,
    /// Files in which processes say that they came to their points.
    marks: AtomicU64,
}

impl World {
    /// Starts the servers in `folder`, which must not exist.
    pub(crate) async fn start(programs: &Programs, folder: PathBuf) -> Result<Self, Failure> {
        files(&folder)?;
        let nats = vec![Server::nats(&programs.nats, &folder).await?];
        let redis = Server::redis(&programs.redis, &folder).await?;
        let mut command = command(&folder, &MODEL);
        command.env("SYSTOLE_REHEARSAL_PACE", "0");
        let model = Node::start(command, &folder.join("model.log")).await?;
        Ok(Self::of(folder, nats, redis, model, ACK_WAIT))
    }

    /// The same over a cluster of three servers, with a model that thinks for so long.
    pub(crate) async fn clustered(
        programs: &Programs,
        folder: PathBuf,
        thinks: Duration,
    ) -> Result<Self, Failure> {
        files(&folder)?;
        write(&folder, "rehearsal.yaml", &slowly(thinks))?;
        let nats = Server::cluster(&programs.nats, &folder).await?;
        let redis = Server::redis(&programs.redis, &folder).await?;
        let model = command(&folder, &MODEL);
        let model = Node::start(model, &folder.join("model.log")).await?;
        Ok(Self::of(folder, nats, redis, model, CLUSTER_ACK_WAIT))
    }

    fn of(
        folder: PathBuf,
        nats: Vec<Server>,
        redis: Server,
        model: Node,
        ack_wait: Duration,
    ) -> Self {
        Self { folder, nats, redis, model, ack_wait, marks: AtomicU64::new(0) }
    }

    /// How to reach its servers.
    pub(crate) fn bus(&self) -> BusSettings {
        BusSettings {
            servers: self.nats.iter().map(|server| nats_url(server.port)).collect(),
            login: BusLogin::None,
            root_certificates: None,
            require_tls: false,
            redis: Some(RedisSettings {
                address: self.redis_url(),
                user: None,
                password: None,
                root_certificates: None,
            }),
            partitions: 1,
            replicas: self.nats.len(),
            ack_wait: self.ack_wait,
            wait: READY,
        }
    }

    /// The server that everything is asked of where there is one only.
    pub(crate) fn bus_server(&self) -> Result<&Server, Failure> {
        self.nats.first().ok_or_else(|| Failure::other("the drill", "there is no NATS server"))
    }

    fn redis_url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.redis.port)
    }

    /// Where NATS keeps its streams.
    pub(crate) fn nats_store(&self) -> PathBuf {
        self.folder.join("nats")
    }

    /// Starts a process and waits until it works.
    pub(crate) async fn node(&self, wanted: Wanted) -> Result<Node, Failure> {
        let mut command = command(&self.folder, &[]);
        command.args(self.words(&wanted));
        let number = self.marks.fetch_add(1, Ordering::Relaxed);
        let mark = self.folder.join(format!("mark-{number}"));
        if let Some(arming) = &wanted.arming {
            command.env(kill::VARIABLE, arming).env(kill::MARK, &mark);
        }
        if wanted.ahead_s != 0 {
            command.env(skew::VARIABLE, wanted.ahead_s.to_string());
        }
        let log = self.folder.join(format!("{}.log", wanted.role));
        let mut node = Node::start(command, &log).await?;
        node.until_ready().await?;
        node.mark = wanted.arming.is_some().then_some(mark);
        Ok(node)
    }

    fn words(&self, wanted: &Wanted) -> Vec<String> {
        let model = format!("http://{}", self.model.address);
        let nats = self.nats.iter().map(|server| nats_url(wanted.line.unwrap_or(server.port)));
        let nats = nats.collect::<Vec<_>>().join(",");
        let (redis, ack_wait) = (self.redis_url(), self.ack_wait.as_secs().to_string());
        let replicas = self.nats.len().to_string();
        let own = match wanted.role {
            // A checkpoint after each run, so that its points are reached.
            Role::Planner => {
                vec!["planner", "--agents", "agents", "--base-url", &model, "--keep-runs", "1"]
            }
            Role::Worker => vec!["worker", "--tools", "tools.yaml", "--slots", "64"],
            Role::Gateway => vec!["gateway"],
        };
        let common = ["--nats", &nats, "--redis", &redis, "--listen", "127.0.0.1:0"];
        let more = ["--ack-wait-s", &ack_wait, "--replicas", &replicas];
        [&own[..], &common, &more].concat().into_iter().map(str::to_owned).collect()
    }

    /// Puts a record where inputs lie that nobody can read.
    pub(crate) async fn poison(&self, place: &ThreadRef) -> Result<(), Failure> {
        let subject = Subject::new(place.clone(), Leaf::In);
        self.bus_server()?.ask(&subject.to_string(), "no record").await.map(drop)
    }

    /// The lines that a tool wrote into a file of its own.
    pub(crate) fn lines(&self, file: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.join(file)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// The orders that were booked, as the tool itself wrote them down.
    pub(crate) fn effects(&self) -> Vec<String> {
        self.lines("effects.log")
    }
}

/// Writes a file below a folder.
pub(crate) fn write(folder: &Path, name: &str, text: &str) -> Result<(), Failure> {
    let path = folder.join(name);
    let parent = path.parent().unwrap_or(folder);
    let written = std::fs::create_dir_all(parent).and_then(|()| std::fs::write(&path, text));
    written.map_err(|error| Failure::other("the drill's folder", error))
}

fn files(folder: &Path) -> Result<(), Failure> {
    let is_there = |name: &str| folder.join(name).exists();
    for (name, text) in [(AGENT_FILE, AGENT), ("rehearsal.yaml", REHEARSAL), ("tools.yaml", TOOLS)]
    {
        if !is_there(name) {
            write(folder, name, text)?;
        }
    }
    Ok(())
}

/// Files of a world whose worker starts an MCP server, for a folder that has none yet.
pub(crate) fn with_server(folder: &Path) -> Result<(), Failure> {
    write(folder, AGENT_FILE, &AGENT.replace("turn]", "turn, pin]"))?;
    write(folder, "tools.yaml", &format!("{TOOLS}{SERVER}"))
}

/// The address of a NATS server of the drill.
pub(crate) fn nats_url(port: u16) -> String {
    format!("nats://127.0.0.1:{port}")
}

/// The program without anything of the surroundings that could change what it does.
pub(crate) fn command(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(SELF);
    command.args(words).current_dir(folder).env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
    command
}

/// A process of the program; ended when it is dropped.
pub(crate) struct Node {
    child: Child,
    process: u32,
    address: String,
    /// Where it says that it came to its kill point.
    mark: Option<PathBuf>,
}

impl Node {
    /// Starts it and waits until it says where it listens; `log` takes what else it says.
    pub(crate) async fn start(mut command: Command, log: &Path) -> Result<Self, Failure> {
        let failed = |error: std::io::Error| Failure::other("a process of the drill", error);
        let log = std::fs::File::options().create(true).append(true).open(log).map_err(failed)?;
        let mut child = command.stderr(log).spawn().map_err(failed)?;
        let process = child.id().unwrap_or_default();
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            let mut output = BufReader::new(output);
            let read = timeout(READY, output.read_line(&mut line)).await;
            read.map_err(std::io::Error::other).and_then(|read| read).map_err(failed)?;
        }
        let address = line.trim().strip_prefix("listening on http://").map(str::to_owned);
        let address =
            address.ok_or_else(|| Failure::other("a process of the drill", "it did not start"))?;
        Ok(Self { child, process, address, mark: None })
    }

    /// Waits until it says that it is ready.
    pub(crate) async fn until_ready(&mut self) -> Result<(), Failure> {
        let latest = Instant::now() + READY;
        let client = reqwest::Client::new();
        let url = format!("http://{}/readyz", self.address);
        while Instant::now() < latest && !self.is_gone() {
            let answer = client.get(&url).timeout(Duration::from_secs(2)).send().await;
            if answer.is_ok_and(|answer| answer.status().is_success()) {
                return Ok(());
            }
            sleep(Duration::from_millis(20)).await;
        }
        Err(Failure::other("a process of the drill", "it does not become ready"))
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Its process; nothing once it has ended.
    pub(crate) fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// A sum of samples of `/metrics` whose series begins so; nothing of a process without an answer.
    pub(crate) async fn metric(&self, series: &str) -> f64 {
        self.metric_now(series).await.unwrap_or(0.0)
    }

    /// The same, if the process answers and has such a series.
    pub(crate) async fn metric_now(&self, series: &str) -> Option<f64> {
        let url = format!("http://{}/metrics", self.address);
        let answer = reqwest::Client::new().get(&url).timeout(Duration::from_secs(2)).send().await;
        let text = answer.ok()?.text().await.ok()?;
        let samples = text.lines().filter(|line| line.starts_with(series));
        let values = samples.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        let values: Vec<f64> = values.collect();
        (!values.is_empty()).then(|| values.iter().sum())
    }

    /// Whether it has ended.
    pub(crate) fn is_gone(&mut self) -> bool {
        self.end().is_some()
    }

    fn end(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Whether its kill point ended it or has it stand still, by its own word and by how it is.
    pub(crate) fn is_hit(&mut self, point: KillPoint, hit: Hit) -> bool {
        let is_so = match hit {
            Hit::Killed => self.end().is_some_and(|end| end.signal() == Some(KILLED)),
            Hit::Paused => self.is_stopped(),
        };
        is_so && self.says(point)
    }

    fn says(&self, point: KillPoint) -> bool {
        let Some(mark) = &self.mark else { return false };
        let said = std::fs::read_to_string(mark).unwrap_or_default();
        said.lines().any(|line| line == kill::mark(point, self.process))
    }

    /// How it ended if nobody asked for it.
    pub(crate) fn stray(&mut self) -> Option<String> {
        let end = self.end()?;
        Some(format!("the process {} ended by itself: {end}", self.process))
    }

    /// Whether it stands still.
    pub(crate) fn is_stopped(&self) -> bool {
        let Some(id) = self.child.id() else { return false };
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        // The name in parentheses may hold anything.
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
    }

    /// Lets it go on.
    pub(crate) fn resume(&self) -> Result<(), Failure> {
        self.signal(Signal::CONT)
    }

    /// Has it stand still.
    pub(crate) fn stop(&self) -> Result<(), Failure> {
        self.signal(Signal::STOP)
    }

    fn signal(&self, signal: Signal) -> Result<(), Failure> {
        let id = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let Some(id) = id else { return Ok(()) };
        kill_process(id, signal).map_err(|error| Failure::other("a signal to a process", error))
    }
}

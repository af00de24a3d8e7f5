//! The processes of one cell.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

use super::cells::Role;
use super::proxy::Proxy;
use super::servers::{Programs, Server};
use crate::failure::Failure;
use crate::nodes::kill;
use crate::nodes::settings::{BusLogin, BusSettings, RedisSettings};

/// The running program, even after its file was replaced.
const SELF: &str = "/proc/self/exe";
/// How long a process may take to be ready.
const READY: Duration = Duration::from_secs(30);
/// After how many silent seconds a process of the drill counts as gone.
pub(crate) const ACK_WAIT: Duration = Duration::from_secs(2);

const AGENT: &str = "name: clerk\nrole: You book what you are told.\nmodel: rehearsal\n\
                     tools: [look, book]\n";

const REHEARSAL: &str = "\
rules:
  - when: { last: user, user_matches: 'hold (\\w+)' }
    say: I book it at once.
    calls: [{ tool: book, arguments: { order: '{{user.1}}' } }]
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
";

/// Servers, a rehearsed model and a folder; the processes are started by the cell.
pub(crate) struct World {
    pub(crate) folder: PathBuf,
    pub(crate) nats: Server,
    pub(crate) redis: Server,
    model: Node,
}

impl World {
    /// Starts the servers in `folder`, which must not exist.
    pub(crate) async fn start(programs: &Programs, folder: PathBuf) -> Result<Self, Failure> {
        write(&folder, "agents/clerk/agent.yaml", AGENT)?;
        write(&folder, "rehearsal.yaml", REHEARSAL)?;
        write(&folder, "tools.yaml", TOOLS)?;
        let nats = Server::nats(&programs.nats, &folder).await?;
        let redis = Server::redis(&programs.redis, &folder).await?;
        let words = ["rehearse", "serve", "rehearsal.yaml", "--listen", "127.0.0.1:0"];
        let mut command = command(&folder, &words);
        command.env("SYSTOLE_REHEARSAL_PACE", "0");
        let model = Node::start(command, &folder.join("model.log")).await?;
        Ok(Self { folder, nats, redis, model })
    }

    /// How to reach its servers.
    pub(crate) fn bus(&self) -> BusSettings {
        BusSettings {
            servers: vec![self.nats_url()],
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
            replicas: 1,
            ack_wait: ACK_WAIT,
            wait: READY,
        }
    }

    fn nats_url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.nats.port)
    }

    fn redis_url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.redis.port)
    }

    /// Where NATS keeps its streams.
    pub(crate) fn nats_store(&self) -> PathBuf {
        self.folder.join("nats")
    }

    /// Starts a process and waits until it works; `arming` is its kill point.
    pub(crate) async fn node(&self, role: Role, arming: Option<&str>) -> Result<Node, Failure> {
        self.node_at(role, arming, self.nats_url()).await
    }

    /// Starts a planner that reaches NATS over a line that can be cut.
    pub(crate) async fn planner_behind(&self, line: &Proxy) -> Result<Node, Failure> {
        self.node_at(Role::Planner, None, format!("nats://127.0.0.1:{}", line.port)).await
    }

    async fn node_at(
        &self,
        role: Role,
        arming: Option<&str>,
        nats: String,
    ) -> Result<Node, Failure> {
        let redis = self.redis_url();
        let model = format!("http://{}", self.model.address);
        let own = match role {
            // A checkpoint after each run, so that its points are reached.
            Role::Planner => {
                vec!["planner", "--agents", "agents", "--base-url", &model, "--keep-runs", "1"]
            }
            Role::Worker => vec!["worker", "--tools", "tools.yaml", "--slots", "64"],
        };
        let common = ["--nats", &nats, "--redis", &redis, "--listen", "127.0.0.1:0"];
        let mut command =
            command(&self.folder, &[&own[..], &common, &["--ack-wait-s", "2"]].concat());
        if let Some(arming) = arming {
            command.env(kill::VARIABLE, arming);
        }
        let log = match role {
            Role::Planner => self.folder.join("planner.log"),
            Role::Worker => self.folder.join("worker.log"),
        };
        let mut node = Node::start(command, &log).await?;
        node.until_ready().await?;
        Ok(node)
    }

    /// The orders that were booked, as the tool itself wrote them down.
    pub(crate) fn effects(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.join("effects.log")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

/// Writes a file below a folder.
pub(crate) fn write(folder: &Path, name: &str, text: &str) -> Result<(), Failure> {
    let path = folder.join(name);
    let parent = path.parent().unwrap_or(folder);
    let written = std::fs::create_dir_all(parent).and_then(|()| std::fs::write(&path, text));
    written.map_err(|error| Failure::other("the drill's folder", error))
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
    address: String,
}

impl Node {
    /// Starts it and waits until it says where it listens; `log` takes what else it says.
    pub(crate) async fn start(mut command: Command, log: &Path) -> Result<Self, Failure> {
        let failed = |error: std::io::Error| Failure::other("a process of the drill", error);
        let log = std::fs::File::options().create(true).append(true).open(log).map_err(failed)?;
        let mut child = command.stderr(log).spawn().map_err(failed)?;
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            let mut output = BufReader::new(output);
            let read = timeout(READY, output.read_line(&mut line)).await;
            read.map_err(std::io::Error::other).and_then(|read| read).map_err(failed)?;
        }
        let address = line.trim().strip_prefix("listening on http://").map(str::to_owned);
        let address =
            address.ok_or_else(|| Failure::other("a process of the drill", "it did not start"))?;
        Ok(Self { child, address })
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

    /// Its process; nothing once it has ended.
    pub(crate) fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// A sum of samples of `/metrics` whose series begins so.
    pub(crate) async fn metric(&self, series: &str) -> f64 {
        let url = format!("http://{}/metrics", self.address);
        let answer = reqwest::Client::new().get(&url).timeout(Duration::from_secs(2)).send().await;
        let Ok(answer) = answer else { return 0.0 };
        let text = answer.text().await.unwrap_or_default();
        let samples = text.lines().filter(|line| line.starts_with(series));
        samples.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    }

    /// Whether it has ended.
    pub(crate) fn is_gone(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_some())
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
        let id = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let Some(id) = id else { return Ok(()) };
        kill_process(id, Signal::CONT).map_err(|error| Failure::other("resuming a process", error))
    }
}

//! The servers of one cell, each on a free port with a folder of its own.

use std::ffi::OsString;
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout};

use crate::failure::Failure;
use crate::settings::Environment;

/// How long a server may take to be there.
const START: Duration = Duration::from_mins(1);

/// The names of the servers of a cluster.
pub(crate) const CLUSTER: [&str; 3] = ["n0", "n1", "n2"];

/// The programs of the servers.
#[derive(Clone, Debug)]
pub(crate) struct Programs {
    pub(crate) nats: PathBuf,
    pub(crate) redis: PathBuf,
    /// What starts a worker of another language, if there is to be one.
    pub(crate) worker: Vec<String>,
}

impl Programs {
    /// Finds them by setting, on the `PATH`, or where `cargo xtask setup` puts them.
    pub(crate) fn find(environment: &Environment) -> Result<Self, Failure> {
        let nats = find(environment, "nats-server", "SYSTOLE_NATS_SERVER")?;
        let redis = find(environment, "redis-server", "SYSTOLE_REDIS_SERVER")?;
        let worker = environment.text("SYSTOLE_DRILL_WORKER").unwrap_or_default();
        let worker = worker.split_whitespace().map(str::to_owned).collect();
        Ok(Self { nats, redis, worker })
    }
}

fn find(environment: &Environment, program: &str, variable: &str) -> Result<PathBuf, Failure> {
    let set = environment.text(variable).map(PathBuf::from);
    let path = environment.text("PATH").unwrap_or_default();
    let on_path: Vec<PathBuf> = std::env::split_paths(&path).map(|dir| dir.join(program)).collect();
    let this = std::env::current_exe().unwrap_or_default();
    let places = ["tools/venv/bin", "tools/lib/bin", "servers/bin"];
    let installed = this.ancestors().flat_map(|dir| places.map(|bin| dir.join(bin).join(program)));
    let mut all = set.into_iter().chain(on_path).chain(installed);
    all.find(|path| path.is_file()).ok_or_else(|| {
        Failure::not_found(format!("there is no {program} on the PATH"))
            .and(format!("Install it, or name it in the variable {variable}."))
    })
}

/// A server; ended when it is dropped.
pub(crate) struct Server {
    program: PathBuf,
    words: Vec<OsString>,
    child: Mutex<Child>,
    pub(crate) port: u16,
}

impl Server {
    /// Starts NATS as it is without settings.
    pub(crate) async fn nats(program: &Path, folder: &Path) -> Result<Self, Failure> {
        Self::nats_with(program, folder, "").await
    }

    /// Starts NATS; `more` are further settings of JetStream.
    pub(crate) async fn nats_with(
        program: &Path,
        folder: &Path,
        more: &str,
    ) -> Result<Self, Failure> {
        let port = free_port()?;
        let store = folder.join("nats");
        let lines = format!(
            "listen: \"127.0.0.1:{port}\"\njetstream {{ store_dir: \"{}\", {more} }}\n",
            store.display()
        );
        let config = folder.join("nats.conf");
        std::fs::write(&config, lines).map_err(|error| Failure::other("nats.conf", error))?;
        Self::start(program, vec![OsString::from("-c"), config.into_os_string()], port).await
    }

    /// Starts three servers that know each other.
    pub(crate) async fn cluster(program: &Path, folder: &Path) -> Result<Vec<Self>, Failure> {
        let mut routes = Vec::new();
        for _ in CLUSTER {
            routes.push(free_port()?);
        }
        let all: Vec<String> =
            routes.iter().map(|port| format!("nats://127.0.0.1:{port}")).collect();
        let mut servers = Vec::new();
        for (name, route) in CLUSTER.iter().zip(&routes) {
            let port = free_port()?;
            let lines = format!(
                "server_name: {name}\nlisten: \"127.0.0.1:{port}\"\n\
                 jetstream {{ store_dir: \"{}\" }}\n\
                 cluster {{ name: drill, listen: \"127.0.0.1:{route}\", routes: [{}] }}\n",
                folder.join(name).display(),
                all.join(", ")
            );
            let config = folder.join(format!("{name}.conf"));
            std::fs::write(&config, lines).map_err(|error| Failure::other("nats.conf", error))?;
            let words = vec![OsString::from("-c"), config.into_os_string()];
            servers.push(Self::start(program, words, port).await?);
        }
        Ok(servers)
    }

    /// Starts Redis, which keeps nothing on disk.
    pub(crate) async fn redis(program: &Path, folder: &Path) -> Result<Self, Failure> {
        let port = free_port()?;
        let text = port.to_string();
        let words = ["--port", &text, "--bind", "127.0.0.1", "--save", "", "--dir"];
        let mut words: Vec<OsString> = words.map(OsString::from).to_vec();
        words.push(folder.as_os_str().to_owned());
        Self::start(program, words, port).await
    }

    async fn start(program: &Path, words: Vec<OsString>, port: u16) -> Result<Self, Failure> {
        let child = Mutex::new(spawn(program, &words)?);
        let server = Self { program: program.to_owned(), words, child, port };
        server.until_there().await?;
        Ok(server)
    }

    async fn until_there(&self) -> Result<(), Failure> {
        let latest = Instant::now() + START;
        while TcpStream::connect(("127.0.0.1", self.port)).await.is_err() {
            if Instant::now() > latest {
                return Err(Failure::other("a server of the drill", "it takes no connections"));
            }
            sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }

    /// Its process; nothing once it has ended.
    pub(crate) async fn id(&self) -> Option<u32> {
        self.child.lock().await.id()
    }

    /// Ends it as a crash does, and starts it again where it stood after `away`.
    pub(crate) async fn crash(&self, away: Duration) -> Result<(), Failure> {
        let mut child = self.child.lock().await;
        kill(&mut child).await?;
        sleep(away).await;
        *child = spawn(&self.program, &self.words)?;
        self.until_there().await
    }

    /// The same, with something done to its files while it is away.
    pub(crate) async fn crash_and(
        &self,
        meanwhile: impl FnOnce() -> io::Result<()>,
    ) -> Result<(), Failure> {
        let mut child = self.child.lock().await;
        kill(&mut child).await?;
        meanwhile().map_err(failed)?;
        *child = spawn(&self.program, &self.words)?;
        self.until_there().await
    }

    /// Says something in the server's own protocol and waits for a line that holds `answer`.
    pub(crate) async fn say(&self, words: &str, answer: &str) -> Result<(), Failure> {
        self.talk(words, |line| line.contains(answer).then_some(())).await
    }

    /// A request to NATS, with the answer to it.
    pub(crate) async fn ask(&self, subject: &str, body: &str) -> Result<Value, Failure> {
        let words = format!(
            "CONNECT {{\"verbose\":false}}\r\nSUB answers 1\r\n\
             PUB {subject} answers {}\r\n{body}\r\n",
            body.len()
        );
        let read = |line: &str| {
            let said = line.starts_with('{').then(|| serde_json::from_str(line).ok()).flatten();
            said.filter(Value::is_object)
        };
        self.talk(&words, read).await
    }

    /// Reads lines until one of them is what is waited for.
    async fn talk<T>(&self, words: &str, read: impl Fn(&str) -> Option<T>) -> Result<T, Failure> {
        let talk = async {
            let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await?;
            stream.write_all(words.as_bytes()).await?;
            let mut lines = BufReader::new(stream).lines();
            while let Some(line) = lines.next_line().await? {
                if let Some(found) = read(&line) {
                    return Ok(found);
                }
            }
            Err(io::Error::other("the connection ended without an answer"))
        };
        let talked = timeout(START, talk).await.map_err(io::Error::other);
        talked.and_then(|talked| talked).map_err(failed)
    }
}

/// Ends a server that lives; one that had ended by itself is no kill.
async fn kill(child: &mut Child) -> Result<(), Failure> {
    if let Some(end) = child.try_wait().map_err(failed)? {
        return Err(failed(io::Error::other(format!("it had ended by itself: {end}"))));
    }
    child.kill().await.map_err(failed)
}

fn failed(error: io::Error) -> Failure {
    Failure::other("a server of the drill", error)
}

fn spawn(program: &Path, words: &[OsString]) -> Result<Child, Failure> {
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.kill_on_drop(true).spawn().map_err(failed)
}

fn free_port() -> Result<u16, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0");
    let address = listener.and_then(|listener| listener.local_addr());
    address.map(|address| address.port()).map_err(|error| Failure::other("a free port", error))
}

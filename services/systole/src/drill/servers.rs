//! The servers of one cell, each on a free port with a folder of its own.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

use crate::failure::Failure;
use crate::settings::Environment;

/// How long a server may take to be there.
const START: Duration = Duration::from_secs(20);

/// The programs of the servers.
#[derive(Clone, Debug)]
pub(crate) struct Programs {
    pub(crate) nats: PathBuf,
    pub(crate) redis: PathBuf,
}

impl Programs {
    /// Finds them by setting, on the `PATH`, or where `cargo xtask setup` puts them.
    pub(crate) fn find(environment: &Environment) -> Result<Self, Failure> {
        let nats = find(environment, "nats-server", "SYSTOLE_NATS_SERVER")?;
        let redis = find(environment, "redis-server", "SYSTOLE_REDIS_SERVER")?;
        Ok(Self { nats, redis })
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
    _child: Child,
    pub(crate) port: u16,
}

impl Server {
    /// Starts NATS.
    pub(crate) async fn nats(program: &Path, folder: &Path) -> Result<Self, Failure> {
        let port = free_port()?;
        let store = folder.join("nats");
        let lines = format!(
            "listen: \"127.0.0.1:{port}\"\njetstream {{ store_dir: \"{}\" }}\n",
            store.display()
        );
        let config = folder.join("nats.conf");
        std::fs::write(&config, lines).map_err(|error| Failure::other("nats.conf", error))?;
        let mut command = Command::new(program);
        command.arg("-c").arg(config);
        Self::start(command, port).await
    }

    /// Starts Redis.
    pub(crate) async fn redis(program: &Path, folder: &Path) -> Result<Self, Failure> {
        let port = free_port()?;
        let mut command = Command::new(program);
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
        command.arg("--dir").arg(folder);
        Self::start(command, port).await
    }

    async fn start(mut command: Command, port: u16) -> Result<Self, Failure> {
        let failed = |error: std::io::Error| Failure::other("a server of the drill", error);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.kill_on_drop(true).spawn().map_err(failed)?;
        let latest = Instant::now() + START;
        while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            if Instant::now() > latest {
                return Err(Failure::other("a server of the drill", "it takes no connections"));
            }
            sleep(Duration::from_millis(10)).await;
        }
        Ok(Self { _child: child, port })
    }
}

fn free_port() -> Result<u16, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0");
    let address = listener.and_then(|listener| listener.local_addr());
    address.map(|address| address.port()).map_err(|error| Failure::other("a free port", error))
}

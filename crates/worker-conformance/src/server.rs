//! A NATS server of one scene.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::sync::Mutex;
use tokio::time::sleep;

/// The login of workers. No log may ever hold its password.
pub(crate) const USER: &str = "worker";
pub(crate) const PASSWORD: &str = "canary-3f9d1c7e5b";

/// A running server; ended when it is dropped.
pub(crate) struct Server {
    program: PathBuf,
    config: PathBuf,
    child: Mutex<Child>,
    pub(crate) port: u16,
    _folder: TempDir,
}

impl Server {
    /// Starts one in a folder of its own and waits until it takes connections.
    pub(crate) async fn start(program: &Path) -> Result<Self> {
        let folder = TempDir::new()?;
        let port = TcpListener::bind("127.0.0.1:0").await?.local_addr()?.port();
        let lines = format!(
            "listen: \"127.0.0.1:{port}\"\njetstream {{ store_dir: \"{}\" }}\n\
             authorization {{ user: {USER}, password: \"{PASSWORD}\" }}\n",
            folder.path().display()
        );
        let config = folder.path().join("nats.conf");
        std::fs::write(&config, lines)?;
        let child = Mutex::new(spawn(program, &config)?);
        let server = Self { program: program.to_owned(), config, child, port, _folder: folder };
        server.until_there().await?;
        Ok(server)
    }

    /// Stops it in good order and starts it again where it stood.
    pub(crate) async fn restart(&self) -> Result<()> {
        let mut child = self.child.lock().await;
        let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        kill_process(id.context("the NATS server has ended by itself")?, Signal::TERM)?;
        child.wait().await?;
        *child = spawn(&self.program, &self.config)?;
        self.until_there().await
    }

    async fn until_there(&self) -> Result<()> {
        for _ in 0..1000 {
            if TcpStream::connect(("127.0.0.1", self.port)).await.is_ok() {
                return Ok(());
            }
            sleep(Duration::from_millis(10)).await;
        }
        bail!("the NATS server took no connection within ten seconds")
    }
}

fn spawn(program: &Path, config: &Path) -> Result<Child> {
    let mut command = Command::new(program);
    command.arg("-c").arg(config).kill_on_drop(true).stdin(Stdio::null());
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    child.with_context(|| format!("{} cannot be started", program.display()))
}

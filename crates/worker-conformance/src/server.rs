//! A NATS server of one scene.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::time::sleep;

/// The login of workers. No log may ever hold its password.
pub(crate) const USER: &str = "worker";
pub(crate) const PASSWORD: &str = "canary-3f9d1c7e5b";

/// A running server; ended when it is dropped.
pub(crate) struct Server {
    _child: Child,
    pub(crate) port: u16,
    _folder: TempDir,
}

impl Server {
    /// Starts one in a folder of its own and waits until it takes connections.
    pub(crate) async fn start(program: &Path) -> Result<Self> {
        let folder = TempDir::new()?;
        let port = TcpListener::bind("127.0.0.1:0").await?.local_addr()?.port();
        let config = format!(
            "listen: \"127.0.0.1:{port}\"\njetstream {{ store_dir: \"{}\" }}\n\
             authorization {{ user: {USER}, password: \"{PASSWORD}\" }}\n",
            folder.path().display()
        );
        let file = folder.path().join("nats.conf");
        std::fs::write(&file, config)?;
        let child = Command::new(program)
            .arg("-c")
            .arg(&file)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("{} cannot be started", program.display()))?;
        for _ in 0..1000 {
            if TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
                return Ok(Self { _child: child, port, _folder: folder });
            }
            sleep(Duration::from_millis(10)).await;
        }
        bail!("the NATS server took no connection within ten seconds")
    }
}

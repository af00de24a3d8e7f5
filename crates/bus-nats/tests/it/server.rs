//! A NATS server of one test.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bus_nats::{NatsBus, Settings};
use tempfile::TempDir;

/// Where the server's program is: the setting `SYSTOLE_NATS_SERVER`, or on the `PATH`, or where
/// `cargo xtask setup` puts it.
#[expect(clippy::disallowed_methods, reason = "tests find their server by the environment")]
pub(crate) fn program() -> Option<PathBuf> {
    let set = std::env::var_os("SYSTOLE_NATS_SERVER").map(PathBuf::from);
    let on_path = std::env::var_os("PATH").into_iter().flat_map(|path| {
        std::env::split_paths(&path).map(|dir| dir.join("nats-server")).collect::<Vec<_>>()
    });
    let target = std::env::current_exe().ok()?;
    let tools = target.ancestors().flat_map(|dir| {
        ["tools/venv/bin", "tools/lib/bin"].map(|bin| dir.join(bin).join("nats-server"))
    });
    set.into_iter().chain(on_path).chain(tools).find(|path| path.is_file())
}

/// A running server; stopped when dropped.
pub(crate) struct Server {
    child: Child,
    port: u16,
    _folder: TempDir,
}

impl Server {
    /// Starts a server and waits until it takes connections.
    pub(crate) async fn start(program: &Path) -> Self {
        Self::start_with(program, "").await
    }

    /// The same with more lines of configuration, in which `FOLDER` stands for the server's folder.
    pub(crate) async fn start_with(program: &Path, more: &str) -> Self {
        Self::start_in(program, TempDir::new().unwrap(), more).await
    }

    /// The same in a folder that holds what the configuration names.
    pub(crate) async fn start_in(program: &Path, folder: TempDir, more: &str) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let place = folder.path().display().to_string();
        let config = format!(
            "listen: \"127.0.0.1:{port}\"\njetstream {{ store_dir: \"{place}\" }}\n{}\n",
            more.replace("FOLDER", &place)
        );
        let file = folder.path().join("nats.conf");
        std::fs::write(&file, config).unwrap();
        let child = Command::new(program)
            .arg("-c")
            .arg(file)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self { child, port, _folder: folder };
        for _ in 0..1000 {
            if tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
                return server;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the server did not take connections");
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings {
            ack_wait: Duration::from_secs(1),
            partitions: 8,
            offer_ttl: Duration::from_millis(1500),
            ..Settings::new(format!("nats://127.0.0.1:{}", self.port))
        }
    }

    pub(crate) async fn bus(&self) -> NatsBus {
        NatsBus::connect(self.settings()).await.unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

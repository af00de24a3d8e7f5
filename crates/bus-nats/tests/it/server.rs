//! A NATS server of one test.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bus_nats::{NatsBus, Settings};
use tempfile::TempDir;
use testkit::servers::find_server;

/// The newest server: the setting `SYSTOLE_NATS_SERVER`, or on the `PATH`, or where `cargo xtask
/// setup` puts it.
pub(crate) fn program() -> Option<PathBuf> {
    find_server("nats-server", "SYSTOLE_NATS_SERVER")
}

/// The oldest server that is supported.
pub(crate) fn oldest_program() -> Option<PathBuf> {
    installed("nats-2.12")
}

/// A server that is too old.
pub(crate) fn too_old_program() -> Option<PathBuf> {
    installed("nats-2.11")
}

fn installed(folder: &str) -> Option<PathBuf> {
    let test = std::env::current_exe().ok()?;
    let mut places =
        test.ancestors().map(|dir| dir.join("servers").join(folder).join("bin/nats-server"));
    places.find(|path| path.is_file())
}

/// A running server; stopped when dropped.
pub(crate) struct Server {
    child: Child,
    port: u16,
    folder: TempDir,
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
        let server = Self { child, port, folder };
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

    /// Somebody else's message, which the server has to answer.
    pub(crate) async fn publish(&self, subject: &str, body: &'static str) -> serde_json::Value {
        let client = async_nats::connect(format!("nats://127.0.0.1:{}", self.port)).await.unwrap();
        let answer = client.request(subject.to_owned(), body.into()).await.unwrap();
        serde_json::from_slice(&answer.payload).unwrap()
    }

    /// Deliveries of a consumer of the first stream that wait for their acknowledgement.
    pub(crate) async fn unacknowledged(&self, consumer: &str) -> u64 {
        let info = self.publish(&format!("$JS.API.CONSUMER.INFO.SY_0.{consumer}"), "").await;
        info["num_ack_pending"].as_u64().unwrap()
    }

    /// How many streams it keeps.
    pub(crate) fn streams(&self) -> usize {
        let place = self.folder.path().join("jetstream/$G/streams");
        std::fs::read_dir(place).map_or(0, Iterator::count)
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings {
            // The suite fills the list, one freeze at a time.
            freeze_lag: Duration::ZERO,
            ack_wait: Duration::from_secs(1),
            partitions: 2,
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

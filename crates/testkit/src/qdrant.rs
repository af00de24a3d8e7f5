//! A Qdrant for tests: the server that `QDRANT_URL` names, or the endpoint in `qdrant/endpoint.py`,
//! which serves the used part of its API over Qdrant's own engine.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// Names a real server, by the address of its gRPC.
pub const URL: &str = "QDRANT_URL";
/// How long the endpoint takes to start at most.
const STARTS: Duration = Duration::from_mins(1);
const MOMENT: Duration = Duration::from_millis(50);

/// One that runs. The endpoint ends when this is dropped.
#[derive(Debug)]
pub struct Qdrant {
    /// Where it answers.
    pub url: String,
    /// Whether it is a real server.
    pub is_real: bool,
    child: Option<Child>,
}

impl Qdrant {
    /// The server that is named, else a new endpoint over `folder`; none where neither can be had.
    #[expect(clippy::disallowed_methods, reason = "tests find their server by the environment")]
    pub fn start(folder: &Path) -> Option<Self> {
        if let Ok(url) = std::env::var(URL) {
            return Some(Self { url, is_real: true, child: None });
        }
        let packages = installed()?;
        let port =
            TcpListener::bind(("127.0.0.1", 0)).and_then(|free| free.local_addr()).ok()?.port();
        let child = endpoint(&packages, port, folder).ok()?;
        let mut qdrant =
            Self { url: format!("http://127.0.0.1:{port}"), is_real: false, child: Some(child) };
        qdrant.wait(port).then_some(qdrant)
    }

    /// Waits until it answers, unless it has ended.
    fn wait(&mut self, port: u16) -> bool {
        let mut left = STARTS;
        while left > Duration::ZERO {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return true;
            }
            let ended =
                self.child.as_mut().is_some_and(|child| !matches!(child.try_wait(), Ok(None)));
            if ended {
                return false;
            }
            sleep(MOMENT);
            left = left.saturating_sub(MOMENT);
        }
        false
    }

    /// Ends it at once, as a crash does.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

impl Drop for Qdrant {
    fn drop(&mut self) {
        self.kill();
    }
}

fn endpoint(packages: &Path, port: u16, folder: &Path) -> io::Result<Child> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("qdrant/endpoint.py");
    Command::new("python3")
        .arg(script)
        .arg(port.to_string())
        .arg(folder)
        .env("PYTHONPATH", packages)
        .stdin(Stdio::piped())
        .spawn()
}

/// Where `cargo xtask setup` puts what the endpoint needs.
fn installed() -> Option<PathBuf> {
    let test = std::env::current_exe().ok()?;
    let mut places = test.ancestors().map(|dir| dir.join("servers/qdrant"));
    places.find(|place| place.join("qdrant_client").is_dir())
}

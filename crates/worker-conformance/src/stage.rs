//! One server, one folder, and the workers that were started on them.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use async_nats::Subscriber;
use futures_util::StreamExt as _;
use proto::tool::{Registration, ToolContract};
use tempfile::TempDir;
use tokio::sync::{Mutex, OnceCell};
use tokio::time::{Instant, sleep};

use crate::bus::Bus;
use crate::server::Server;
use crate::tools::TOOLS;
use crate::traffic::Traffic;
use crate::worker::{Process, Subject};

/// Between two looks.
pub(crate) const LOOK: Duration = Duration::from_millis(25);
/// How long a worker may take to offer its tools.
const READY: Duration = Duration::from_secs(30);

/// Where rules are played.
pub(crate) struct Stage {
    pub(crate) bus: Bus,
    pub(crate) traffic: Traffic,
    pub(crate) processes: Mutex<Vec<Process>>,
    subject: Subject,
    pub(crate) server: Server,
    folder: TempDir,
    offer: OnceCell<Registration>,
    number: AtomicU64,
    ears: Mutex<(Subscriber, Subscriber)>,
}

impl Stage {
    /// Makes the streams; no worker is there yet.
    pub(crate) async fn open(server: Server, subject: &Subject) -> Result<Self> {
        let bus = Bus::open(server.port).await?;
        let said = bus.client.subscribe("$JS.ACK.>").await?;
        let handed = bus.client.subscribe("_INBOX.>").await?;
        bus.now().await?;
        Ok(Self {
            bus,
            traffic: Traffic::default(),
            processes: Mutex::default(),
            subject: subject.clone(),
            server,
            folder: TempDir::new()?,
            offer: OnceCell::new(),
            number: AtomicU64::new(1),
            ears: Mutex::new((said, handed)),
        })
    }

    /// Hears what is said beside the stream, for as long as it is polled.
    pub(crate) async fn watch(&self) {
        let mut ears = self.ears.lock().await;
        let (said, handed) = &mut *ears;
        loop {
            tokio::select! {
                Some(message) = said.next() => self.traffic.heard(&message.subject, &message.payload),
                Some(message) = handed.next() => {
                    if let Some(reply) = &message.reply {
                        self.traffic.handed(reply);
                    }
                }
                else => return,
            }
        }
    }

    /// Starts the worker and waits until its tools are on offer.
    pub(crate) async fn begin(&self) -> Result<()> {
        self.begin_over(self.server.port).await
    }

    /// The same for a worker that reaches the server over this port.
    pub(crate) async fn begin_over(&self, port: u16) -> Result<()> {
        self.start_over(port).await?;
        let latest = Instant::now() + READY;
        loop {
            if let Some((_, offer)) = self.bus.offers().await?.into_iter().next() {
                let missing = TOOLS.iter().filter(|expected| {
                    !offer.tools.iter().any(|tool| tool.name.as_str() == expected.name)
                });
                let missing: Vec<&str> = missing.map(|tool| tool.name).collect();
                ensure!(missing.is_empty(), "not on offer: {}", missing.join(", "));
                return self.offer.set(offer).context("two workers at once");
            }
            if Instant::now() > latest {
                bail!("nothing in the bucket SY_TOOLS; the worker's words:\n{}", self.log_end());
            }
            sleep(LOOK).await;
        }
    }

    /// Starts another worker and does not wait for it.
    pub(crate) async fn start_worker(&self) -> Result<()> {
        self.start_over(self.server.port).await
    }

    async fn start_over(&self, port: u16) -> Result<()> {
        let process = self.subject.start(port, self.folder.path())?;
        self.processes.lock().await.push(process);
        Ok(())
    }

    /// What the first worker offers.
    pub(crate) fn offer(&self) -> Result<&Registration> {
        self.offer.get().context("no worker was started")
    }

    /// The contract of a tool.
    pub(crate) fn contract(&self, tool: &str) -> Result<&ToolContract> {
        let mut tools = self.offer()?.tools.iter();
        tools.find(|contract| contract.name.as_str() == tool).context("no such tool")
    }

    /// A number that is used once.
    pub(crate) fn number(&self) -> u64 {
        self.number.fetch_add(1, Ordering::Relaxed)
    }

    /// How often a tool wrote this line.
    pub(crate) fn lines(&self, file: &str, line: &str) -> usize {
        let text = std::fs::read_to_string(self.path(file)).unwrap_or_default();
        text.lines().filter(|found| *found == line).count()
    }

    /// A file of the tools.
    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    /// Waits until a tool has written this line so often.
    pub(crate) async fn until_lines(&self, file: &str, line: &str, count: usize) -> Result<()> {
        let latest = Instant::now() + Duration::from_secs(20);
        while self.lines(file, line) < count {
            let found = self.lines(file, line);
            ensure!(Instant::now() < latest, "`{line}` is {found} times in {file}, not {count}");
            sleep(LOOK).await;
        }
        Ok(())
    }

    /// What all workers of this stage said.
    pub(crate) fn log(&self) -> String {
        let bytes = std::fs::read(self.path("worker.log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn log_end(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        let from = lines.len().saturating_sub(20);
        lines.get(from..).unwrap_or_default().join("\n")
    }
}

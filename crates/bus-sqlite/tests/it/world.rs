//! What the tests are written with.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bus_sqlite::{Durability, Options, SqliteBus};
use bytes::Bytes;
use ports::clock::Clock;
use ports::journal::{Append, Fence, Journal};
use proto::ids::{Nonce, Partition, Sequence, TenantId, ThreadId, ThreadRef};
use proto::subject::{Leaf, Subject};
use proto::time::Timestamp;
use tempfile::TempDir;
use testkit::memory::SeededIds;
use tokio::time::Instant;

/// A clock that runs with the runtime's.
pub(crate) struct TestClock(Instant);

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp(1_767_225_600_000).after(self.0.elapsed())
    }
}

/// A folder for one file, removed at the end.
pub(crate) struct Place {
    folder: TempDir,
    clock: Arc<TestClock>,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { folder: TempDir::new().unwrap(), clock: Arc::new(TestClock(Instant::now())) }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("store.db")
    }

    pub(crate) fn options(&self) -> Options {
        options(self.clock())
    }

    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        let clock: Arc<TestClock> = Arc::clone(&self.clock);
        clock
    }

    pub(crate) fn open(&self) -> SqliteBus {
        SqliteBus::open(self.path(), self.options()).unwrap()
    }
}

/// Options for files that need not survive a power cut.
pub(crate) fn options(clock: Arc<dyn Clock>) -> Options {
    let mut options = Options::new(clock, Arc::new(SeededIds::new(7)));
    options.durability = Durability::Normal;
    options
}

/// Options of a process of its own.
pub(crate) fn fresh_options() -> Options {
    options(Arc::new(TestClock(Instant::now())))
}

pub(crate) fn thread(n: u64) -> ThreadRef {
    ThreadRef {
        partition: Partition(0),
        tenant: TenantId::new("acme").unwrap(),
        thread: ThreadId::from_parts(1_767_225_600_000 + n, u128::from(n)),
    }
}

pub(crate) fn append(n: u64, leaf: Leaf, payload: impl Into<Bytes>, fence: Fence) -> Append {
    Append {
        subject: Subject::new(thread(n), leaf),
        payload: payload.into(),
        nonce: Nonce::new("0123456789abcdef").unwrap(),
        fence,
        dedup: None,
    }
}

pub(crate) async fn put(bus: &SqliteBus, n: u64, leaf: Leaf, payload: impl Into<Bytes>) -> u64 {
    bus.append(append(n, leaf, payload, Fence::None)).await.unwrap().sequence.0
}

/// Sequence and payload of all records of a thread.
pub(crate) async fn records(journal: &dyn Journal, n: u64) -> Vec<(u64, Bytes)> {
    let found = journal.read(&thread(n), Sequence::NONE, Sequence::NONE).await.unwrap();
    found.into_iter().map(|stored| (stored.sequence.0, stored.payload)).collect()
}

/// The bytes of a file and of what SQLite keeps beside it.
pub(crate) fn content(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap()
}

/// Long enough for a slow machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

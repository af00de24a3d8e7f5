//! What is known before anything is judged.

use std::time::Duration;

use ports::deployment::{BusFacts, MemoryFacts, ServerFacts, StoreFacts};

/// A distributed deployment.
#[derive(Clone, Debug)]
pub(crate) struct Deployment {
    pub(crate) wanted: Wanted,
    /// What the bus said, or why nothing is known of it.
    pub(crate) bus: Result<BusFacts, String>,
    /// What each monitoring address said.
    pub(crate) monitors: Vec<Monitor>,
    pub(crate) memory: Memory,
    /// How far the server's clock is ahead of this one, in milliseconds.
    pub(crate) ahead_ms: Option<i64>,
}

/// What the settings ask for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) copies: usize,
    pub(crate) ack_wait: Duration,
}

/// A monitoring address.
#[derive(Clone, Debug)]
pub(crate) struct Monitor {
    pub(crate) url: String,
    pub(crate) server: Result<ServerFacts, String>,
    /// Free room on the server's disk; known only where it is this machine's.
    pub(crate) free_bytes: Option<u64>,
}

/// Working memory.
#[derive(Clone, Debug)]
pub(crate) enum Memory {
    None,
    Unreachable(String),
    There(MemoryFacts),
}

/// A store in one file.
#[derive(Clone, Debug)]
pub(crate) struct Embedded {
    /// Where.
    pub(crate) path: String,
    pub(crate) store: Store,
    pub(crate) disk: Disk,
    /// The most bytes that the file may take.
    pub(crate) most_bytes: Option<u64>,
}

/// The file.
#[derive(Clone, Debug)]
pub(crate) enum Store {
    Missing,
    Unreadable(String),
    There(StoreFacts),
}

/// The disk that the file lies on, or would.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Disk {
    pub(crate) free_bytes: u64,
    pub(crate) system: FileSystem,
}

/// What a file system keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileSystem {
    /// What was synced.
    Local,
    /// Nothing beyond the machine's life.
    Volatile(&'static str),
    /// What another machine keeps, with its own idea of locks and syncs.
    Remote(&'static str),
    /// What goes with the container.
    Layer,
}

/// File systems by the number that Linux gives them.
const SYSTEMS: [(u64, FileSystem); 11] = [
    (0x0102_1994, FileSystem::Volatile("tmpfs")),
    (0x8584_58f6, FileSystem::Volatile("ramfs")),
    (0x6969, FileSystem::Remote("NFS")),
    (0x517b, FileSystem::Remote("SMB")),
    (0xfe53_4d42, FileSystem::Remote("SMB")),
    (0xff53_4d42, FileSystem::Remote("CIFS")),
    (0x0102_1997, FileSystem::Remote("9p")),
    (0x6573_5546, FileSystem::Remote("FUSE")),
    (0x00c3_6400, FileSystem::Remote("Ceph")),
    (0x0bd0_0bd0, FileSystem::Remote("Lustre")),
    (0x794c_7630, FileSystem::Layer),
];

impl FileSystem {
    /// Of a number; one that is not known keeps what was synced.
    pub(crate) fn of(magic: u64) -> Self {
        let known = SYSTEMS.iter().find(|(number, _)| *number == magic);
        known.map_or(Self::Local, |(_, system)| *system)
    }
}

//! What a deployment says of itself. Adapters read it and change nothing; `systole doctor` judges it.

use std::time::Duration;

use proto::time::Timestamp;

/// A bus, seen by a client of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BusFacts {
    /// The version of the server that answered, with major and minor as numbers.
    pub version: String,
    /// The same as numbers.
    pub major_minor: (u32, u32),
    /// The name of that server.
    pub server: String,
    /// The largest message it takes.
    pub max_message_bytes: u64,
    /// Why it keeps nothing; absent where it does.
    pub keeps_nothing: Option<String>,
    /// The logs that a deployment has.
    pub logs: Vec<LogFacts>,
    /// The queues on them.
    pub queues: Vec<QueueFacts>,
    /// The server's time when it was asked last.
    pub time: Option<Timestamp>,
}

/// A log of a bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFacts {
    /// Its name.
    pub name: String,
    /// What lies in it.
    pub holds: Holds,
    /// How it is kept; absent where there is none yet.
    pub kept: Option<LogSettings>,
}

/// What lies in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// The records of threads.
    Records,
    /// Payloads that records name.
    Artifacts,
    /// What operators hold back.
    Freezes,
}

/// How a log is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogSettings {
    /// On a disk, not in memory.
    pub on_disk: bool,
    /// On how many servers.
    pub copies: usize,
    /// The names of those servers, as far as they are known.
    pub keepers: Vec<String>,
    /// Limits beyond which something is discarded, in the server's own words.
    pub limits: Vec<String>,
    /// Records go away by a limit only, never because somebody has read them.
    pub by_limits: bool,
    /// Whether it takes schedules.
    pub schedules: bool,
}

/// A queue of a bus.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueFacts {
    /// The log that it reads.
    pub log: String,
    /// Its name.
    pub name: String,
    /// How many deliveries may be held at once over all processes; none is no limit.
    pub most_held: Option<u64>,
    /// How long a delivery may be held without a sign of life.
    pub ack_wait: Duration,
    /// How often a record is delivered at most; none is no limit.
    pub most_deliveries: Option<u64>,
    /// After which time without a reader it is deleted; none is never.
    pub deleted_after: Option<Duration>,
    /// Whether each delivery must be acknowledged.
    pub acknowledged: bool,
    /// Whether somebody has paused it.
    pub paused: bool,
}

/// When acknowledged records are on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// Before they are acknowledged.
    Always,
    /// So long afterwards at most.
    Every(Duration),
}

/// One server of a bus, as its operators see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFacts {
    /// Its name.
    pub name: String,
    /// When acknowledged records are on its disk; absent where it keeps nothing.
    pub sync: Option<Sync>,
    /// The most bytes that it keeps.
    pub most_bytes: u64,
    /// How many of them are taken.
    pub used_bytes: u64,
    /// The folder that they lie in, on its own machine.
    pub folder: String,
}

/// Working memory in a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryFacts {
    /// What it is and its version.
    pub version: String,
    /// Whether it is old enough to be refused.
    pub too_old: bool,
    /// Whether it forgets what was not asked to be forgotten when it is full.
    pub evicts: Option<String>,
    /// The most bytes it keeps; none is no limit.
    pub most_bytes: Option<u64>,
    /// How many of them are taken.
    pub used_bytes: Option<u64>,
    /// Whether each write is logged to its disk.
    pub on_disk: bool,
}

/// A store in one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreFacts {
    /// Whether what is answered is synced to the disk first.
    pub synced: bool,
    /// How it keeps a commit whole, in its own word.
    pub journal_mode: String,
    /// Its size.
    pub bytes: u64,
}

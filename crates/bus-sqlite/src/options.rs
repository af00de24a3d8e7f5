//! What a caller decides about a bus.

use std::sync::Arc;
use std::time::Duration;

use ports::clock::{Clock, Ids};

/// What an answered append has survived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// A power cut: each group commit is synced to the disk before it is answered.
    #[default]
    Full,
    /// The end of the process, not of the machine: a power cut may take the newest commits.
    Normal,
}

/// How a bus behaves.
#[derive(Clone)]
pub struct Options {
    /// What an answered append has survived.
    pub durability: Durability,
    /// How long a delivery is held without a sign of life.
    pub ack_wait: Duration,
    /// How long a call waits for the writer or a reader before it answers with an error.
    pub deadline: Duration,
    /// How long a registration lasts unless it is renewed.
    pub registration_lasts: Duration,
    /// The largest size of the database file in bytes; beyond it writes answer that it is full.
    pub max_file_bytes: Option<u64>,
    /// Files up to this size are checked page by page when they are opened.
    pub check_up_to_bytes: u64,
    /// Threads that read.
    pub readers: usize,
    /// The server time of records and schedules.
    pub clock: Arc<dyn Clock>,
    /// Names for the records that the bus writes itself.
    pub ids: Arc<dyn Ids>,
}

impl Options {
    /// The defaults with this clock and these names.
    pub fn new(clock: Arc<dyn Clock>, ids: Arc<dyn Ids>) -> Self {
        Self {
            durability: Durability::Full,
            ack_wait: Duration::from_secs(6),
            deadline: Duration::from_secs(30),
            registration_lasts: Duration::from_secs(30),
            max_file_bytes: None,
            check_up_to_bytes: 128 * 1024 * 1024,
            readers: 2,
            clock,
            ids,
        }
    }
}

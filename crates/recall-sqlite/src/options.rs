//! What a caller decides about a memory.

use std::time::Duration;

/// How a memory behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The most bytes that the blocks of all tenants take together; those that were not asked for
    /// longest are dropped first. Of a tenant that is larger alone, the newest fragments are searched.
    pub memory: usize,
    /// How long a call waits for the file before it answers with an error.
    pub deadline: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { memory: 256 << 20, deadline: Duration::from_secs(10) }
    }
}

//! The facts of all threads of a partition in the order they were written, for readers that keep
//! something else up to date and know by themselves how far they have come.

use async_trait::async_trait;
use proto::ids::{Partition, Sequence};

use crate::BusError;
use crate::journal::Stored;

/// The most records of one answer.
pub const MOST_RECORDS: usize = 1000;

/// Facts in order.
#[async_trait]
pub trait Feed: Send + Sync {
    /// Facts from sequence `from` on, in order, at most `limit` and [`MOST_RECORDS`]; none when there
    /// is nothing more. May lag behind the newest append. A lost tail's sequences are used again, so a
    /// reader compares the nonce of the last fact it has read.
    async fn facts(
        &self,
        partition: Partition,
        from: Sequence,
        limit: usize,
    ) -> Result<Vec<Stored>, BusError>;
}

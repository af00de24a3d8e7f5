//! What operators hold back.

use std::time::Duration;

use async_trait::async_trait;
use proto::freeze::{Freeze, FreezeTarget};

use crate::BusError;

/// How many freezes there may be at once.
pub const MOST_FREEZES: usize = 256;
/// The longest reason of a freeze, in bytes.
pub const LONGEST_REASON: usize = 1024;

/// How old a worker's list may be where asking costs a message for each call, of a call that may be
/// repeated. A freeze is answered only after this long, so that what it holds back has ended to begin.
pub const LAG: Duration = Duration::from_millis(250);

/// Freezes. Each is durable once it was answered, and from then on every process sees it: a list is
/// never older than what was answered before it was asked for, nor one that was asked for [`LAG`] ago
/// older than a freeze that is answered now.
#[async_trait]
pub trait Freezes: Send + Sync {
    /// Freezes; a second freeze of the same target replaces the first. Answers [`BusError::Full`]
    /// beyond [`MOST_FREEZES`], and [`BusError::TooLarge`] for a reason beyond [`LONGEST_REASON`].
    async fn freeze(&self, freeze: Freeze) -> Result<(), BusError>;

    /// Lets go; answers whether it was frozen.
    async fn thaw(&self, target: &FreezeTarget) -> Result<bool, BusError>;

    /// All freezes, by target.
    async fn frozen(&self) -> Result<Vec<Freeze>, BusError>;
}

/// The list with one freeze more.
pub fn with(mut frozen: Vec<Freeze>, freeze: Freeze) -> Result<Vec<Freeze>, BusError> {
    let bytes = freeze.reason.len();
    if bytes > LONGEST_REASON {
        return Err(BusError::TooLarge { bytes, limit: LONGEST_REASON });
    }
    frozen.retain(|other| other.target != freeze.target);
    if frozen.len() >= MOST_FREEZES {
        return Err(BusError::Full(format!("there are {MOST_FREEZES} freezes; thaw some first")));
    }
    frozen.push(freeze);
    frozen.sort_by(|one, other| one.target.cmp(&other.target));
    Ok(frozen)
}

//! Long-term memory, as a planner uses it: a run begins with what is recalled, and what its threads
//! said is indexed behind the journal. Both may fail, and no run fails with them.
//!
//! - `recalling`: what a run begins with
//! - `pieces`: what of a thread is kept; `indexing`: how it gets into the store

pub(crate) mod indexing;
mod pieces;
pub(crate) mod recalling;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ports::admission::SharedCells;
use ports::embedder::Embedder;
use ports::feed::Feed;
use ports::recall::Recall;

/// Takes secrets out of a text.
pub type Redact = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// Long-term memory and what goes into it.
#[derive(Clone)]
pub struct Memory {
    /// The store.
    pub recall: Arc<dyn Recall>,
    /// What texts mean.
    pub embedder: Arc<dyn Embedder>,
    /// What is indexed.
    pub feed: Arc<dyn Feed>,
    /// Where planners agree who indexes; without it each does, which changes nothing but the work.
    pub cells: Option<Arc<dyn SharedCells>>,
    /// Takes secrets out before anything is embedded or stored.
    pub redact: Redact,
    /// How long a run waits for what it begins with.
    pub deadline: Duration,
    /// Between two looks of the indexer.
    pub pause: Duration,
}

impl Memory {
    /// How long a run waits unless somebody says otherwise.
    pub const DEADLINE: Duration = Duration::from_millis(150);
    /// Between two looks unless somebody says otherwise.
    pub const PAUSE: Duration = Duration::from_millis(500);

    /// A store that is searched by words and by what `embedder` makes of them.
    pub fn new(
        recall: Arc<dyn Recall>,
        embedder: Arc<dyn Embedder>,
        feed: Arc<dyn Feed>,
        redact: Redact,
    ) -> Self {
        let (deadline, pause) = (Self::DEADLINE, Self::PAUSE);
        Self { recall, embedder, feed, cells: None, redact, deadline, pause }
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}

//! Long-term memory: which store, which embedder, and what is taken out of texts before they go in.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use planner::Memory;
use planner::memory::Redact;
use ports::BusError;
use ports::embedder::{Embedder, WordsOnly};
use ports::feed::Feed;
use ports::recall::Recall;
use recall_sqlite::{Options, SqliteRecall};
use tool_core::redact::Redactor;

/// The file of long-term memory beside a store.
pub(crate) fn file_of(store: &Path) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push("-memory");
    PathBuf::from(name)
}

/// The memory beside a store, whoever owns that.
pub(crate) fn beside(store: &Path) -> Result<Arc<dyn Recall>, BusError> {
    Ok(Arc::new(SqliteRecall::open(&file_of(store), Options::default())?))
}

/// The same for a planner. A memory that cannot be opened is told and done without: it is not what
/// threads rest on.
pub(crate) fn embedded(store: &Path, feed: Arc<dyn Feed>) -> Option<Memory> {
    match beside(store) {
        Ok(recall) => Some(Memory::new(recall, embedder(), feed, redact())),
        Err(error) => {
            let file = file_of(store);
            tracing::warn!(%error, file = %file.display(), "runs go on without long-term memory");
            None
        }
    }
}

/// Makes vectors of texts.
pub(crate) fn embedder() -> Arc<dyn Embedder> {
    Arc::new(WordsOnly)
}

/// Takes secrets out, by the rules that results of tools are held to.
pub(crate) fn redact() -> Redact {
    let redactor = Redactor::standard();
    Arc::new(move |text| redactor.redact(text))
}

//! Long-term memory: which store, which embedder, and what is taken out of texts before they go in.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use model_openai::{EmbedderSettings, OpenAiEmbedder};
use planner::Memory;
use planner::memory::Redact;
use ports::BusError;
use ports::embedder::{Embedder, WordsOnly};
use ports::feed::Feed;
use ports::recall::Recall;
use recall_qdrant::QdrantRecall;
use recall_sqlite::{Options, SqliteRecall};
use tool_core::redact::Redactor;
use worker::executor::memory::ToolMemory;

use crate::arguments::Common;
use crate::failure::Failure;

/// How long one request to an embedder may take.
const EMBEDS: Duration = Duration::from_secs(30);

/// The file of long-term memory beside a store.
pub(crate) fn file_of(store: &Path) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push("-memory");
    PathBuf::from(name)
}

/// The memory that the settings name, else the file beside the store, whoever owns that.
pub(crate) fn named(common: &Common) -> Result<Arc<dyn Recall>, BusError> {
    let Some(url) = &common.qdrant else {
        return Ok(Arc::new(SqliteRecall::open(&file_of(&common.store), Options::default())?));
    };
    let settings = recall_qdrant::Settings {
        api_key: common.qdrant_key.clone(),
        collection: common.qdrant_collection.clone(),
        ..recall_qdrant::Settings::new(url.clone())
    };
    Ok(Arc::new(QdrantRecall::new(settings)?))
}

/// The same for a planner. A memory that cannot be opened is told and done without: it is not what
/// threads rest on.
pub(crate) fn planners(common: &Common, feed: Arc<dyn Feed>) -> Option<Memory> {
    let made = named(common).and_then(|recall| {
        let embedder = embedder(common)?;
        Ok(Memory::new(recall, embedder, feed, redact()))
    });
    made.inspect_err(|error| tracing::warn!(%error, "runs go on without long-term memory")).ok()
}

/// The same for tools.
pub(crate) fn of_tools(memory: &Memory) -> ToolMemory {
    let Memory { recall, embedder, .. } = memory;
    ToolMemory { recall: Arc::clone(recall), embedder: Arc::clone(embedder) }
}

/// Makes vectors of texts.
pub(crate) fn embedder(common: &Common) -> Result<Arc<dyn Embedder>, BusError> {
    let Some(url) = &common.embedder else { return Ok(Arc::new(WordsOnly)) };
    let settings = EmbedderSettings {
        base_url: url.clone(),
        api_key: common.embedder_key.clone().unwrap_or_default(),
        model: common.embedder_model.clone(),
        deadline: EMBEDS,
    };
    let made = OpenAiEmbedder::new(settings);
    Ok(Arc::new(made.map_err(|error| BusError::Refused(error.to_string()))?))
}

/// The embedder, if it makes the vectors that a memory holds; a memory that holds none yet takes its.
pub(crate) async fn fitting(
    recall: &dyn Recall,
    common: &Common,
) -> Result<Option<Arc<dyn Embedder>>, Failure> {
    let embedder = embedder(common)?;
    let Some(own) = embedder.space().await? else { return Ok(None) };
    match recall.space().await? {
        None => recall.settle(Some(own)).await?,
        Some(held) if held == own => {}
        Some(held) => {
            let why =
                format!("memory holds vectors of {held}, and the embedder makes those of {own}");
            let failure = Failure::input(why);
            return Err(failure.and("run `systole memory reindex`, or choose the other embedder"));
        }
    }
    Ok(Some(embedder))
}

/// What a question means, in the space of a memory.
pub(crate) async fn meaning(
    recall: &dyn Recall,
    common: &Common,
    question: &str,
) -> Result<Option<Arc<[f32]>>, Failure> {
    let Some(embedder) = fitting(recall, common).await? else { return Ok(None) };
    Ok(embedder.embed(&[question.to_owned()]).await?.into_iter().next())
}

/// Takes secrets out, by the rules that results of tools are held to.
pub(crate) fn redact() -> Redact {
    let redactor = Redactor::standard();
    Arc::new(move |text| redactor.redact(text))
}

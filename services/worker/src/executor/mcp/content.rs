//! From what a server answers to what a tool says: text as it is, structured content as JSON, and what
//! is no text kept as artifacts and named.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use ports::artifacts::Artifacts;
use proto::ids::ThreadRef;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;
use tokio::time::timeout;

use super::super::Output;

/// The most that is kept of one answer outside of its text.
const MOST_ARTIFACTS: usize = 32;
/// How long an artifact may take to be stored.
const STORING: Duration = Duration::from_secs(10);
/// For what newer servers may say.
const UNKNOWN: &str = "[content of a kind that this version does not know]";
/// Longest name of something, in characters.
const LONGEST_NAME: usize = 300;

/// The answer as the tool's output, of which `most` bytes are kept.
pub(super) async fn output(
    result: CallToolResult,
    artifacts: Option<&dyn Artifacts>,
    thread: &ThreadRef,
    most: u64,
) -> Output {
    let mut shelf = Shelf { artifacts, thread, left: MOST_ARTIFACTS };
    let structured = result.structured_content;
    let mut parts: Vec<String> = structured.iter().map(Value::to_string).collect();
    for block in result.content {
        match block {
            // Servers say structured content a second time, for clients that do not know it.
            ContentBlock::Text(text) if is_same(structured.as_ref(), &text.text) => {}
            ContentBlock::Text(text) => parts.push(text.text),
            ContentBlock::Image(image) => {
                parts.push(shelf.keep("image", &image.mime_type, &image.data).await);
            }
            ContentBlock::Audio(audio) => {
                parts.push(shelf.keep("audio", &audio.mime_type, &audio.data).await);
            }
            ContentBlock::Resource(embedded) => {
                parts.push(resource(embedded.resource, &mut shelf).await);
            }
            ContentBlock::ResourceLink(link) => {
                let kind = link.mime_type.as_deref().unwrap_or("unknown type");
                let words = link.description.as_deref().or(link.title.as_deref()).unwrap_or("");
                parts.push(format!(
                    "[link {}: {}, {}{}]",
                    name(&link.uri),
                    name(&link.name),
                    name(kind),
                    said(words)
                ));
            }
            _ => parts.push(UNKNOWN.to_owned()),
        }
    }
    bounded(parts.join("\n"), most)
}

fn said(words: &str) -> String {
    if words.is_empty() { String::new() } else { format!(", {}", name(words)) }
}

fn is_same(structured: Option<&Value>, text: &str) -> bool {
    let same = |value: &Value| serde_json::from_str::<Value>(text).is_ok_and(|said| said == *value);
    structured.is_some_and(same)
}

async fn resource(contents: ResourceContents, shelf: &mut Shelf<'_>) -> String {
    match contents {
        ResourceContents::TextResourceContents { uri, text, .. } => {
            format!("[resource {}]\n{text}", name(&uri))
        }
        ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
            let kind = mime_type.unwrap_or_else(|| "application/octet-stream".to_owned());
            shelf.keep(&format!("resource {}", name(&uri)), &kind, &blob).await
        }
        _ => UNKNOWN.to_owned(),
    }
}

/// One line, cut.
fn name(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(LONGEST_NAME).collect()
}

/// Where bytes are put that are no text.
struct Shelf<'a> {
    artifacts: Option<&'a dyn Artifacts>,
    thread: &'a ThreadRef,
    left: usize,
}

impl Shelf<'_> {
    /// Keeps base64 as an artifact, and says where.
    async fn keep(&mut self, what: &str, kind: &str, data: &str) -> String {
        let kind = name(kind);
        let Ok(bytes) = STANDARD.decode(data.trim()) else {
            return format!("[{what}: {kind}, which is no valid base64]");
        };
        let size = bytes.len();
        let Some(left) = self.left.checked_sub(1) else {
            return format!("[{what}: {kind}, {size} bytes, left out: too many in one answer]");
        };
        self.left = left;
        let Some(artifacts) = self.artifacts else {
            return format!("[{what}: {kind}, {size} bytes, not kept]");
        };
        match timeout(STORING, artifacts.put(self.thread, Bytes::from(bytes))).await {
            Ok(Ok(kept)) => format!("[{what}: {kind}, {size} bytes, artifact {}]", kept.id),
            Ok(Err(error)) => {
                tracing::warn!(%error, "an artifact of an MCP tool was not stored");
                format!("[{what}: {kind}, {size} bytes, could not be stored]")
            }
            Err(_) => format!("[{what}: {kind}, {size} bytes, could not be stored in time]"),
        }
    }
}

/// The first `most` bytes; a cut halves no character.
fn bounded(text: String, most: u64) -> Output {
    let total = u64::try_from(text.len()).unwrap_or(u64::MAX);
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    if text.len() <= most {
        return Output::from(text);
    }
    let end = text.floor_char_boundary(most);
    let mut bytes = text.into_bytes();
    bytes.truncate(end);
    Output { bytes: bytes.into(), total }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_halves_no_character_and_counts_what_was_there() {
        let output = bounded("aé€".to_owned(), 4);
        assert_eq!((output.bytes.as_ref(), output.total), ("aé".as_bytes(), 6));
        assert_eq!(bounded("ab".to_owned(), 2), Output::from("ab".to_owned()));
    }
}

//! What the builtins promise, so that a manifest need not repeat it.

use proto::tool::Effect;
use serde_json::{Value, json};

use crate::run::Builtin;

/// File builtins may read a slow disk.
pub(crate) const TIMEOUT_MS: u64 = 5000;
/// A page that a model asks for is as long as it asks; `expand` keeps to that by itself.
pub(crate) const EXPAND_TOKENS: u64 = 10_000;

impl Builtin {
    /// What it does, for the model.
    pub fn description(self) -> &'static str {
        match self {
            Self::ListFiles => "List the files and folders below a folder, one path a line.",
            Self::ReadFile => "Read a text file, or some of its lines.",
            Self::SearchFiles => {
                "Search text files by regular expression; returns path, line number and line."
            }
            Self::WriteFile => "Create a text file or replace its whole content.",
            Self::EditFile => "Replace one passage of a text file; it must occur exactly once.",
            Self::Clock => "Tell the current date and time in UTC.",
            Self::FetchUrl => "Fetch a web page or a text file by its URL; returns its text.",
            Self::Expand => {
                "Read more of an earlier result that was shown in part, page by page or by search."
            }
            Self::Remember => {
                "Keep one fact or rule in long-term memory, for this and later conversations."
            }
            Self::Recall => {
                "Find what earlier conversations said; returns memories, each with its id."
            }
            Self::Forget => "Remove one memory for good, by the id that recall showed.",
        }
    }

    /// What repeating it does. A repeated edit finds nothing to replace, so it counts as an effect
    /// that nobody repeats.
    pub fn effect(self) -> Effect {
        match self {
            Self::ListFiles
            | Self::ReadFile
            | Self::SearchFiles
            | Self::Clock
            | Self::FetchUrl
            | Self::Expand
            | Self::Recall => Effect::ReadOnly,
            Self::WriteFile | Self::Remember | Self::Forget => Effect::Idempotent,
            Self::EditFile => Effect::Irreversible,
        }
    }

    /// JSON Schema of its arguments.
    pub fn parameters(self) -> Value {
        match self {
            Self::ListFiles => object(
                &json!({
                    "path": text("The folder, relative to the root; the root itself if absent."),
                    "depth": { "type": "integer", "minimum": 1, "maximum": 20, "default": 2,
                        "description": "How many levels to go down." },
                }),
                &[],
            ),
            Self::ReadFile => object(
                &json!({
                    "path": text("The file, relative to the root."),
                    "from_line": { "type": "integer", "minimum": 1, "default": 1,
                        "description": "The first line to return." },
                    "lines": { "type": "integer", "minimum": 1, "default": 2000,
                        "description": "How many lines to return at most." },
                }),
                &["path"],
            ),
            Self::SearchFiles => object(
                &json!({
                    "pattern": text("A regular expression, matched line by line."),
                    "path": text("The folder or file to search, relative to the root; the whole root if absent."),
                    "glob": text("Only files whose path matches this glob, such as `*.rs`; all if absent."),
                    "max": { "type": "integer", "minimum": 1, "maximum": 1000, "default": 100,
                        "description": "How many lines to return at most." },
                }),
                &["pattern"],
            ),
            Self::WriteFile => object(
                &json!({
                    "path": text("The file, relative to the root; its folders are created."),
                    "content": { "type": "string", "description": "The whole text of the file." },
                }),
                &["path", "content"],
            ),
            Self::EditFile => object(
                &json!({
                    "path": text("The file, relative to the root."),
                    "old": text("The passage to replace, exactly as it is in the file."),
                    "new": { "type": "string", "description": "What to put there." },
                }),
                &["path", "old", "new"],
            ),
            Self::Clock => object(&json!({}), &[]),
            Self::FetchUrl => object(
                &json!({ "url": text("The address, beginning with https:// or http://.") }),
                &["url"],
            ),
            Self::Expand => expand(),
            Self::Remember => remember(),
            Self::Recall => recall(),
            Self::Forget => object(
                &json!({ "id": text("The id in brackets before the memory, as recall shows it.") }),
                &["id"],
            ),
        }
    }
}

fn remember() -> Value {
    object(
        &json!({
            "text": text("What to keep, in one or two full sentences that stand alone."),
            "kind": { "type": "string", "enum": ["fact", "rule"], "default": "fact",
                "description": "A fact, or a rule to keep to from now on." },
        }),
        &["text"],
    )
}

fn recall() -> Value {
    object(
        &json!({
            "question": text("What to look for, in words that the memory may have."),
            "limit": { "type": "integer", "minimum": 1, "maximum": 50, "default": 8,
                "description": "How many memories to return at most." },
        }),
        &["question"],
    )
}

fn expand() -> Value {
    object(
        &json!({
            "artifact": { "type": "string", "pattern": "^([0-9a-f]{64}|[a-z0-9]{9})$",
                "description": "The id of the full result, as the earlier result names it." },
            "from": { "type": "integer", "minimum": 0, "default": 0,
                "description": "The byte to begin at, from 0." },
            "bytes": { "type": "integer", "minimum": 1, "maximum": 40_000, "default": 4000,
                "description": "How many bytes to return at most." },
            "search": text("Return the lines that contain this text, upper and lower case alike, \
                with the byte each begins at; pages if absent."),
        }),
        &["artifact"],
    )
}

fn text(description: &str) -> Value {
    json!({ "type": "string", "minLength": 1, "description": description })
}

fn object(properties: &Value, required: &[&str]) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

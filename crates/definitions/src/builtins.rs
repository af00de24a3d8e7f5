//! What the builtins promise, so that a manifest need not repeat it.

use proto::tool::Effect;
use serde_json::{Value, json};

use crate::run::Builtin;

/// File builtins may read a slow disk.
pub(crate) const TIMEOUT_MS: u64 = 5000;

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
        }
    }

    /// What repeating it does. A repeated edit finds nothing to replace, so it counts as an effect
    /// that nobody repeats.
    pub fn effect(self) -> Effect {
        match self {
            Self::ListFiles | Self::ReadFile | Self::SearchFiles | Self::Clock => Effect::ReadOnly,
            Self::WriteFile => Effect::Idempotent,
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
        }
    }
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

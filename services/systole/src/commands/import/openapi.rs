//! From a description of an API.

use std::time::Duration;

use definitions::openapi::{Chosen, OperationTool, Options, parse, tools};
use serde_json::{Map, Value, json};

use super::{Draft, yaml};
use crate::arguments::ImportOpenapi;
use crate::failure::Failure;

/// Largest description that is fetched.
const LARGEST: usize = 64 * 1024 * 1024;
const FETCHING: Duration = Duration::from_mins(1);

pub(super) async fn draft(asked: &ImportOpenapi) -> Result<Draft, Failure> {
    let text = text(&asked.from).await?;
    let wrong = |why: String| Failure::input(format!("{}: {why}", asked.from));
    let document = parse(&asked.from, &text).map_err(wrong)?;
    let options = Options {
        server: asked.server.clone(),
        auth: asked.auth_env.as_ref().map(|name| json!({ "env": name })),
        headers: Map::new(),
        private: asked.written.private,
        model_headers: Vec::new(),
    };
    let chosen = match (asked.operations.is_empty(), asked.tags.is_empty()) {
        (false, _) => Chosen::Named(asked.operations.iter().map(String::as_str).collect()),
        (true, false) => Chosen::Tagged(&asked.tags),
        (true, true) => Chosen::All,
    };
    let made = tools(&document, &chosen, &options).map_err(wrong)?;
    let left_out = made.left_out.iter().map(|(name, why)| format!("{name}: {why}")).collect();
    let mut text = head(asked, &document);
    text.push_str("tools:\n");
    for tool in &made.tools {
        text.push_str(&written(tool, &asked.written.prefix));
    }
    Ok(Draft { text, tools: made.tools.len(), left_out })
}

async fn text(from: &str) -> Result<String, Failure> {
    if !from.starts_with("http://") && !from.starts_with("https://") {
        return std::fs::read_to_string(from)
            .map_err(|error| Failure::input(format!("{from}: cannot be read: {error}")));
    }
    let wrong = |why: String| Failure::input(format!("{from}: cannot be fetched: {why}"));
    let fetched = tokio::time::timeout(FETCHING, fetch(from)).await;
    fetched.map_err(|_late| wrong("it took too long".to_owned()))?.map_err(wrong)
}

async fn fetch(from: &str) -> Result<String, String> {
    let mut answer = reqwest::get(from).await.map_err(|error| error.to_string())?;
    if !answer.status().is_success() {
        return Err(format!("the server answered {}", answer.status()));
    }
    let mut bytes = Vec::new();
    while let Some(more) = answer.chunk().await.map_err(|error| error.to_string())? {
        if bytes.len().saturating_add(more.len()) > LARGEST {
            return Err(format!("it has more than {LARGEST} bytes"));
        }
        bytes.extend_from_slice(&more);
    }
    String::from_utf8(bytes).map_err(|error| error.to_string())
}

fn head(asked: &ImportOpenapi, document: &Value) -> String {
    let info = |key: &str| {
        let text = document.get("info").and_then(|info| info.get(key)?.as_str());
        text.unwrap_or_default().lines().next().unwrap_or_default().to_owned()
    };
    let words = format!(
        "{} {}, from {}.\n\
         Written by `systole tools import openapi`. Read it before you use it:\n\
         - The effect of each tool is what its method promises: GET reads, PUT and DELETE may be\n  \
         repeated, POST and PATCH may not. Servers do not always keep to that.\n\
         - What cannot be repeated asks a person first (`approval: always`). Loosen that where nobody\n  \
         could mind.\n\
         - Lines that begin with `risk:` say what to look at.",
        info("title"),
        info("version"),
        asked.from
    );
    yaml::comment(words.trim(), 0)
}

fn written(tool: &OperationTool, prefix: &str) -> String {
    let mut fields = tool.fields.clone();
    let name = fields.remove("name").and_then(|name| name.as_str().map(str::to_owned));
    let name = format!("{prefix}{}", name.unwrap_or_default());
    let mut text = String::new();
    for note in &tool.notes {
        text.push_str(&yaml::comment(&format!("risk: {note}"), 2));
    }
    if fields.get("effect").and_then(Value::as_str) == Some("irreversible") {
        fields.insert("approval".to_owned(), Value::from("always"));
    }
    // In the order in which people read.
    let order = ["description", "effect", "approval", "parameters", "run"];
    text.push_str("  - ");
    text.push_str(&yaml::field("name", &Value::from(name), 0));
    for key in order {
        if let Some(value) = fields.get(key) {
            text.push_str(&yaml::field(key, value, 4));
        }
    }
    text
}

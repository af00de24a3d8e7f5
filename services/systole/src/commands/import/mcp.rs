//! From an MCP server.

use std::path::{Path, PathBuf};

use definitions::http::{Header, SecretPlace};
use definitions::mcp::{EnvValue, LiveTool, McpHttp, McpPlace, McpProcess, McpServer};
use definitions::openapi::tool_name;
use serde_json::{Map, Value, json};
use worker::executor::McpServers;

use super::super::Context;
use super::{Draft, yaml};
use crate::arguments::ImportMcp;
use crate::failure::Failure;
use crate::wiring;

/// A server that a package manager fetches first takes its time.
const START_MS: u64 = 120_000;
const OUTPUT: u64 = 1024 * 1024;

pub(super) async fn draft(context: &Context, asked: &ImportMcp) -> Result<Draft, Failure> {
    let folder = folder(&asked.written.out)?;
    let (server, written) = server(asked, &folder)?;
    let settings = wiring::tools::executor_settings(&context.environment, &folder);
    let live = McpServers::list(&server, &settings).await.map_err(Failure::server)?;
    let is_wanted = |tool: &&LiveTool| asked.tools.is_empty() || asked.tools.contains(&tool.name);
    let chosen: Vec<&LiveTool> = live.iter().filter(is_wanted).collect();
    let missing = asked.tools.iter().filter(|name| !live.iter().any(|tool| tool.name == **name));
    let left_out = missing.map(|name| format!("{name}: the server has no such tool")).collect();
    let mut text = head(asked);
    text.push_str("sources:\n  - mcp:\n");
    text.push_str(&yaml::fields(&written, 6));
    if !asked.written.prefix.is_empty() {
        text.push_str(&yaml::field("prefix", &Value::from(asked.written.prefix.as_str()), 4));
    }
    text.push_str("    tools:\n");
    for tool in &chosen {
        text.push_str(&tool_text(tool));
    }
    Ok(Draft { text, tools: chosen.len(), left_out })
}

/// Where the file will lie, for paths in the server's command.
fn folder(out: &Path) -> Result<PathBuf, Failure> {
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or_else(|| Path::new("."));
    let wrong = |error| Failure::input(format!("{}: {error}", folder.display()));
    folder.canonicalize().map_err(wrong)
}

type Fields = Map<String, Value>;

/// The server, and how it is written.
fn server(asked: &ImportMcp, folder: &Path) -> Result<(McpServer, Fields), Failure> {
    let first = asked.server.first().map_or("", String::as_str);
    let is_url = first.starts_with("http://") || first.starts_with("https://");
    let (place, written) =
        if is_url { elsewhere(asked, first)? } else { started(asked, first, folder)? };
    let server = McpServer {
        place,
        instances: 1,
        trust_annotations: false,
        start_timeout_ms: START_MS,
        max_output_bytes: OUTPUT,
    };
    Ok((server, written))
}

fn elsewhere(asked: &ImportMcp, url: &str) -> Result<(McpPlace, Fields), Failure> {
    if asked.server.len() > 1 || !asked.env.is_empty() {
        return Err(Failure::input("a URL takes neither arguments nor --env; use --header"));
    }
    let mut headers = Vec::new();
    let mut fields = Map::from_iter([("url".to_owned(), Value::from(url))]);
    let mut said = Map::new();
    for header in &asked.header {
        let Some((name, variable)) = header.split_once('=') else {
            return Err(Failure::input(format!("--header {header}: write HEADER=VARIABLE")));
        };
        let is_authorization = name.eq_ignore_ascii_case("authorization");
        let prefix = if is_authorization { "Bearer " } else { "" };
        let mut place = Map::from_iter([("env".to_owned(), Value::from(variable))]);
        if is_authorization {
            place.insert("prefix".to_owned(), Value::from(prefix));
        }
        said.insert(name.to_owned(), Value::Object(place));
        let from = SecretPlace::Env(variable.to_owned());
        headers.push((name.to_owned(), Header::Secret { from, prefix: prefix.to_owned() }));
    }
    if !said.is_empty() {
        fields.insert("headers".to_owned(), Value::Object(said));
    }
    if asked.written.private {
        fields.insert("private".to_owned(), Value::from(true));
    }
    let private = asked.written.private;
    Ok((McpPlace::Http(McpHttp { url: url.to_owned(), headers, private }), fields))
}

fn started(asked: &ImportMcp, program: &str, folder: &Path) -> Result<(McpPlace, Fields), Failure> {
    if !asked.header.is_empty() {
        return Err(Failure::input("a command takes no --header; use --env"));
    }
    let mut fields = Map::from_iter([("command".to_owned(), json!(asked.server))]);
    if !asked.env.is_empty() {
        fields.insert("env".to_owned(), json!(asked.env));
    }
    let mut argv = asked.server.clone();
    if let Some(first) = argv.first_mut()
        && program.contains('/')
    {
        *first = folder.join(program).display().to_string();
    }
    let own = |name: &String| (name.clone(), EnvValue::Secret(SecretPlace::Env(name.clone())));
    let env = asked.env.iter().map(own).collect();
    Ok((McpPlace::Process(McpProcess { argv, folder: folder.to_owned(), env }), fields))
}

fn head(asked: &ImportMcp) -> String {
    let words = format!(
        "The tools of the MCP server {}.\n\
         Written by `systole tools import mcp`. Read it before you use it:\n\
         - risk: the server is a program of somebody else; it may do whatever its process may do.\n\
         - risk: descriptions and parameters are the server's words, and models do what they say.\n  \
         They stand here so that the server cannot change them unseen.\n\
         - What repeating a tool does is nothing that a server is believed. Each tool counts as\n  \
         irreversible and asks a person, unless it says that it only reads: change `effect` and\n  \
         `approval` once you know what it does.",
        asked.server.join(" ")
    );
    yaml::comment(&words, 0)
}

fn tool_text(tool: &LiveTool) -> String {
    let mut text = String::new();
    if tool.read_only {
        let words =
            "The server says that it changes nothing. If that is so, write `effect: read_only`.";
        text.push_str(&yaml::comment(words, 6));
    } else if tool.idempotent {
        let words =
            "The server says that it may be repeated. If that is so, write `effect: idempotent`.";
        text.push_str(&yaml::comment(words, 6));
    }
    let mut fields = Map::new();
    if tool_name(&tool.name) != tool.name {
        fields.insert("name".to_owned(), Value::from(tool_name(&tool.name)));
    }
    let words = tool.description.clone().unwrap_or_else(|| format!("The tool {}.", tool.name));
    fields.insert("description".to_owned(), Value::from(words));
    fields.insert("effect".to_owned(), Value::from("irreversible"));
    if !tool.read_only {
        fields.insert("approval".to_owned(), Value::from("always"));
    }
    fields.insert("parameters".to_owned(), parameters(&tool.parameters));
    text.push_str(&yaml::field(&tool.name, &Value::Object(fields), 6));
    text
}

/// The server's schema without the word that only validators need.
fn parameters(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Some(fields) = schema.as_object_mut() {
        fields.remove("$schema");
    }
    schema
}

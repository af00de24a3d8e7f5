//! Tools of MCP servers: the `mcp:` form of a run, and what becomes of a tool once its server has
//! told what it is.
//!
//! The manifest fixes which server is asked, which of its tools may be called and what repeating each
//! does. What it leaves out, the description and the parameters, comes from the server when the worker
//! starts, and is part of the tool's fingerprint: a server that changes its mind is another tool.

use std::path::PathBuf;

use proto::hash;
use proto::tool::Effect;
use serde_json::{Value, json};

use crate::http::{Header, SecretPlace};
use crate::manifest::ToolDefinition;
use crate::run::Run;

/// Longest description that is taken from a server, in characters.
const LONGEST_DESCRIPTION: usize = 4096;
/// Largest schema that is taken from a server, in bytes of JSON.
const LARGEST_SCHEMA: usize = 64 * 1024;

/// One tool of an MCP server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpRun {
    /// The server; tools with equal servers share its processes.
    pub server: McpServer,
    /// The tool's name at the server.
    pub tool: String,
    /// What the manifest says itself, so that the server is not asked for it.
    pub stated: McpStated,
}

/// What a manifest says of an MCP tool in its own words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is whether one field is there")]
pub struct McpStated {
    /// The description.
    pub description: bool,
    /// The parameters.
    pub parameters: bool,
    /// What repeating does.
    pub effect: bool,
    /// The schema of results.
    pub result_schema: bool,
}

/// A server, and how it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct McpServer {
    /// How it is reached.
    pub place: McpPlace,
    /// How many calls it works on at once; processes of a server that is started here.
    pub instances: u32,
    /// Whether its word that a tool only reads, or may be repeated, is believed.
    pub trust_annotations: bool,
    /// How long it may take until it answers for the first time.
    pub start_timeout_ms: u64,
    /// Bytes of a result that are kept.
    pub max_output_bytes: u64,
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum McpPlace {
    /// A process of the worker, which talks over its standard input and output.
    Process(McpProcess),
    /// A server that runs elsewhere, over streamable HTTP.
    Http(McpHttp),
}

/// A server that the worker starts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct McpProcess {
    /// Program and arguments, all fixed.
    pub argv: Vec<String>,
    /// Working folder; absolute after loading.
    pub folder: PathBuf,
    /// Variables that it sees besides `PATH`, `HOME` and `LANG`.
    pub env: Vec<(String, EnvValue)>,
}

/// Where the value of a variable comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum EnvValue {
    /// The manifest.
    Text(String),
    /// A secret, by reference.
    Secret(SecretPlace),
}

/// A server elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct McpHttp {
    /// Its address.
    pub url: String,
    /// Headers of every request; no template is filled.
    pub headers: Vec<(String, Header)>,
    /// Whether it may lie in a private network.
    pub private: bool,
}

/// What a server says of one of its tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveTool {
    /// Its name there.
    pub name: String,
    /// For models.
    pub description: Option<String>,
    /// The schema of its arguments.
    pub parameters: Value,
    /// The schema of its structured results.
    pub result_schema: Option<Value>,
    /// Whether it says that it changes nothing.
    pub read_only: bool,
    /// Whether it says that repeating changes nothing more.
    pub idempotent: bool,
}

impl LiveTool {
    /// Everything that makes it the tool it is.
    fn identity(&self) -> Value {
        json!({
            "name": self.name, "description": self.description, "parameters": self.parameters,
            "result_schema": self.result_schema, "read_only": self.read_only,
            "idempotent": self.idempotent,
        })
    }
}

impl ToolDefinition {
    /// The same tool with what its MCP server says of it; the error says why it cannot be offered.
    pub fn resolved(&self, live: &LiveTool) -> Result<Self, String> {
        let Run::Mcp(run) = &self.run else { return Ok(self.clone()) };
        let mut tool = self.clone();
        if !run.stated.description {
            tool.contract.description = described(live);
        }
        if !run.stated.parameters {
            small(&live.parameters, "parameters")?;
            tool.contract.parameters = live.parameters.clone();
        }
        if !run.stated.result_schema {
            live.result_schema.as_ref().map_or(Ok(()), |schema| small(schema, "results"))?;
            tool.contract.result_schema.clone_from(&live.result_schema);
        }
        if !run.stated.effect && run.server.trust_annotations {
            tool.contract.effect = announced(live);
        }
        let identity = json!({ "live": live.identity(), "effect": tool.contract.effect });
        Ok(tool.with_implementation_hash(hash::fingerprint(&hash::canonical(&identity)).as_str()))
    }
}

fn described(live: &LiveTool) -> String {
    let text = live.description.as_deref().map(str::trim).filter(|text| !text.is_empty());
    let text =
        text.map_or_else(|| format!("The tool {} of an MCP server.", live.name), str::to_owned);
    text.chars().take(LONGEST_DESCRIPTION).collect()
}

fn announced(live: &LiveTool) -> Effect {
    if live.read_only {
        Effect::ReadOnly
    } else if live.idempotent {
        Effect::Idempotent
    } else {
        Effect::Irreversible
    }
}

fn small(schema: &Value, of: &str) -> Result<(), String> {
    let bytes = schema.to_string().len();
    if bytes <= LARGEST_SCHEMA {
        return Ok(());
    }
    Err(format!(
        "the schema of its {of} has {bytes} bytes, more than {LARGEST_SCHEMA}: write one of your own"
    ))
}

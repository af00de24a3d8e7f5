//! What people write: agent and tool files, checked, with file, line, field and fix; pure.
//!
//! Text goes in; typed values come out, or every problem of the file at once. Reading files and
//! looking up variables is the caller's. Reading order:
//!
//! - [`problem`]: what is wrong with a file, where, and what to write instead
//! - [`yaml`], [`fields`]: a file as a tree that knows its lines, read field by field
//! - [`manifest`], [`run`], [`http`], [`mcp`]: tool files; `docs/tools.md` is the reference for their
//!   writers
//! - [`openapi`]: the operations of an API's description as tools
//! - [`policy`]: what workers keep to around a tool
//! - [`template`]: `{name}` in argument vectors, requests and resource names
//! - [`agent_file`]: agent files; `docs/agents.md`
//! - [`lint`]: advice on tools that are valid but hard to call

pub mod agent_file;
mod agent_memory;
mod builtins;
pub mod fields;
pub mod http;
mod http_reader;
mod http_url;
pub mod lint;
pub mod manifest;
pub mod mcp;
mod mcp_reader;
pub mod openapi;
mod parameters;
pub mod policy;
mod policy_reader;
pub mod problem;
mod risks;
pub mod run;
mod run_reader;
mod schema_words;
mod sources;
pub mod template;
mod times;
mod tool_reader;
pub mod yaml;

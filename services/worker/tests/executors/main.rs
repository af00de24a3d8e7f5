//! Executors against real processes and real files.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on ends here")]

mod builtins;
mod command;
mod deaths;
mod escapes;
mod group;
mod http;
mod http_expand;
mod http_server;
mod mcp;
mod remembering;
mod support;

//! What the worker under test has to serve; `proto/PROTOCOL.md` has the same table in words.

use proto::tool::Effect;

/// One of the tools.
pub(crate) struct Expected {
    pub(crate) name: &'static str,
    pub(crate) effect: Effect,
    pub(crate) timeout_ms: u64,
    pub(crate) max_attempts: u32,
}

const fn tool(name: &'static str, effect: Effect, timeout_ms: u64, max_attempts: u32) -> Expected {
    Expected { name, effect, timeout_ms, max_attempts }
}

/// All of them.
pub(crate) const TOOLS: [Expected; 11] = [
    tool("cf_echo", Effect::ReadOnly, 2000, 1),
    tool("cf_slow", Effect::ReadOnly, 12_000, 2),
    tool("cf_hang", Effect::ReadOnly, 300, 2),
    tool("cf_fail", Effect::ReadOnly, 2000, 3),
    tool("cf_flaky", Effect::ReadOnly, 2000, 3),
    tool("cf_big", Effect::ReadOnly, 2000, 1),
    tool("cf_keyed", Effect::Idempotent, 2000, 3),
    tool("cf_put", Effect::Checkable, 2500, 3),
    tool("cf_append", Effect::Irreversible, 2500, 3),
    tool("cf_refuse", Effect::Irreversible, 2000, 1),
    tool("cf_crash", Effect::Irreversible, 2000, 3),
];

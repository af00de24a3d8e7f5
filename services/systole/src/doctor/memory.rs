//! Judges working memory. It may be lost whole: nothing here makes a deployment less durable.

use ports::deployment::MemoryFacts;

use super::facts::Memory;
use super::finding::{Finding, Kind, found};
use super::size;

/// Above it memory counts as nearly full, in percent.
const NEARLY_FULL: u64 = 90;

/// Everything that is to be said about it.
pub(super) fn judge(memory: &Memory) -> Vec<Finding> {
    match memory {
        Memory::None => vec![found(
            Kind::MemoryNone,
            "There is no working memory.",
            "Nothing is lost and nothing irreversible repeated; but repeatable calls may run twice at once, a turn \
             that is taken over loses the words it had, and results that died with their worker are not found again.",
            "Start Redis 6.2 or newer, or Valkey, and give every process --redis.",
        )],
        Memory::Unreachable(why) => vec![found(
            Kind::MemoryUnreachable,
            format!("{}.", why.trim_end_matches('.')),
            "Processes that are started without it wait and then give up; those that run go on as if there were none.",
            "Start it, or correct --redis and the login.",
        )],
        Memory::There(facts) => judge_server(facts),
    }
}

fn judge_server(facts: &MemoryFacts) -> Vec<Finding> {
    let mut findings = Vec::new();
    let version = &facts.version;
    if facts.too_old {
        findings.push(found(
            Kind::MemoryTooOld,
            format!("{version} lacks commands that are needed."),
            "Processes refuse to start with it.",
            "Upgrade to Redis 6.2 or newer, or Valkey.",
        ));
    }
    if let Some(policy) = &facts.evicts {
        let when = facts.most_bytes.map_or_else(
            || "once it has a limit".to_owned(),
            |bytes| format!("at {}", size(bytes)),
        );
        findings.push(found(
            Kind::MemoryEvicts,
            format!("{version} evicts keys {when}: its policy is {policy}."),
            "Leases and results vanish before their time: repeatable calls run twice at once, and results that died \
             with their worker are not found again.",
            "Set `maxmemory-policy noeviction`.",
        ));
    }
    if let (Some(used), Some(most)) = (facts.used_bytes, facts.most_bytes)
        && used.saturating_mul(100) >= most.saturating_mul(NEARLY_FULL)
    {
        findings.push(found(
            Kind::MemoryNearlyFull,
            format!("{version} holds {} of at most {}.", size(used), size(most)),
            "When it is full it refuses writes: processes go on as if there were no working memory.",
            "Raise `maxmemory`.",
        ));
    }
    if !facts.on_disk {
        findings.push(found(
            Kind::MemoryNotOnDisk,
            format!("{version} does not log its writes."),
            "A restart empties it. Threads are folded from their records again; only time is lost.",
            "Set `appendonly yes` where that time matters.",
        ));
    }
    findings
}

//! What an agent's file says of long-term memory.

use proto::agent::{Edition, MemoryUse};

use crate::agent_file::switch;
use crate::fields::Fields;
use crate::problem::Report;
use crate::yaml::{Kind, Place};

/// What it uses of long-term memory: `off`, or a map.
pub(crate) fn memory(at: &Place<'_>, report: &mut Report) -> Option<MemoryUse> {
    if matches!(at.node().kind, Kind::Bool(_) | Kind::Text(_)) {
        let recall = if switch(at, report)? { MemoryUse::default().recall } else { 0 };
        return Some(MemoryUse { recall, ..MemoryUse::default() });
    }
    let mut fields = Fields::of(at, report)?;
    let recall = match fields.get("recall") {
        Some(at) => at.whole(0, 100, report).and_then(|most| u32::try_from(most).ok()),
        None => Some(MemoryUse::default().recall),
    };
    let collections = match fields.get("collections") {
        Some(at) => at
            .texts(report)
            .and_then(|names| names.iter().map(|name| edition(&at, name, report)).collect()),
        None => Some(Vec::new()),
    };
    fields.close(report);
    Some(MemoryUse { recall: recall?, collections: collections? })
}

/// `handbook@2026-11`.
fn edition(at: &Place<'_>, name: &str, report: &mut Report) -> Option<Edition> {
    let Some(edition) = Edition::parse(name) else {
        let fix = "write `handbook@2`, with letters, digits, `.`, `-` and `_` on both sides";
        report.wrong(at, "a collection with its version", fix);
        return None;
    };
    Some(edition)
}

//! What of a thread is kept: the words of users and models and the results of tools, by turn group.
//! What was recalled is no part of the log, so it is never kept again as something new.

use memory_core::fragment::{Fragment, FragmentId, Origin};
use memory_core::kind::Kind;
use memory_core::text::tokens;
use planner_core::Thread;
use planner_core::thread::Logged;
use ports::recall::LONGEST_TEXT;
use proto::ids::ToolCallId;
use proto::time::Timestamp;

/// Calls of one group whose results are kept.
const CALLS: usize = 64;

/// The pieces of a thread's turn groups from `from` on, and how many groups are complete by then. A
/// group with an open call is not, and ends the list: its results are still to come.
pub(crate) fn pieces(
    thread: &Thread,
    from: usize,
    at: Timestamp,
    redact: &dyn Fn(&str) -> String,
) -> (Vec<Fragment>, usize) {
    let mut pieces = Vec::new();
    let mut complete = from;
    for (group, logged) in thread.log.iter().enumerate().skip(from) {
        let Some(parts) = parts(thread, logged) else { break };
        let turn = u64::try_from(group).unwrap_or(u64::MAX);
        for (number, (origin, kind, text)) in (0_u32..).zip(parts) {
            let id = FragmentId::new(&thread.place, turn, number);
            pieces.extend(piece(id, origin, kind, &redact(text), at));
        }
        complete = group.saturating_add(1);
    }
    (pieces, complete)
}

type Part<'t> = (Origin, Kind, &'t str);

/// The parts of a group; none while one of its calls is open.
fn parts<'t>(thread: &'t Thread, logged: &'t Logged) -> Option<Vec<Part<'t>>> {
    Some(match logged {
        Logged::User { text, .. } => vec![(Origin::User, Kind::Talk, text)],
        // Words of the runtime say nothing that is worth finding.
        Logged::Note { .. } => Vec::new(),
        Logged::Turn { text, calls, .. } => {
            let mut parts = vec![(Origin::Model, Kind::Talk, text.as_str())];
            for id in calls.iter().take(CALLS) {
                parts.push(result(thread, id)?);
            }
            parts
        }
    })
}

fn result<'t>(thread: &'t Thread, id: &ToolCallId) -> Option<Part<'t>> {
    let call = thread.calls.get(id)?;
    let closed = call.closed.as_ref()?;
    let tool = call.requested.tool.clone();
    Some((Origin::Tool { tool }, Kind::Observation, closed.content.as_str()))
}

fn piece(
    id: FragmentId,
    origin: Origin,
    kind: Kind,
    text: &str,
    at: Timestamp,
) -> Option<Fragment> {
    if text.trim().is_empty() {
        return None;
    }
    let text = text.get(..text.floor_char_boundary(LONGEST_TEXT)).unwrap_or(text).to_owned();
    Some(Fragment {
        id,
        origin,
        kind,
        at,
        tokens: u32::try_from(tokens(&text)).unwrap_or(u32::MAX),
        text,
        entities: Vec::new(),
        importance: 0.0,
        explanation: None,
        facts: Vec::new(),
    })
}

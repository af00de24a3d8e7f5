//! What of a thread is kept: the words of users and models and the results of tools, by turn group, with
//! what each is, what it names, the facts it states and how much it matters. What was recalled is no
//! part of the log, and what a tool of memory answered is passed over, so nothing is kept twice.

use memory_core::entity::{Extract, Rules};
use memory_core::fact::{Fact, FactId, stated};
use memory_core::fragment::{Fragment, FragmentId, Origin};
use memory_core::importance::{Scoring, Session, Turn};
use memory_core::kind::classify;
use memory_core::text::tokens;
use planner_core::Thread;
use planner_core::thread::Logged;
use ports::recall::LONGEST_TEXT;
use proto::ids::ToolCallId;
use proto::time::Timestamp;

/// Calls of one group whose results are kept.
const CALLS: usize = 64;
/// The tools whose results come from memory.
const FROM_MEMORY: [&str; 4] = ["recall", "expand", "remember", "forget"];

/// Makes the pieces of one thread, group by group: importance is a rank among what came before.
#[derive(Debug)]
pub(crate) struct Pieces {
    session: Session,
    /// Groups that were made.
    pub(crate) complete: usize,
}

impl Default for Pieces {
    fn default() -> Self {
        Self { session: Session::new(Scoring::default()), complete: 0 }
    }
}

impl Pieces {
    /// The pieces of the groups that have become complete. A group with an open call is not, and ends
    /// the list: its results are still to come.
    pub(crate) fn next(
        &mut self,
        thread: &Thread,
        at: Timestamp,
        redact: &dyn Fn(&str) -> String,
    ) -> Vec<Fragment> {
        let mut pieces = Vec::new();
        for (group, logged) in thread.log.iter().enumerate().skip(self.complete) {
            let Some(parts) = parts(thread, logged) else { break };
            let turn = u64::try_from(group).unwrap_or(u64::MAX);
            for (number, (origin, text)) in (0_u32..).zip(parts) {
                let id = FragmentId::new(&thread.place, turn, number);
                pieces.extend(self.piece(id, origin, &redact(text), at));
            }
            self.complete = group.saturating_add(1);
        }
        pieces
    }

    fn piece(
        &mut self,
        id: FragmentId,
        origin: Origin,
        text: &str,
        at: Timestamp,
    ) -> Option<Fragment> {
        if text.trim().is_empty() {
            return None;
        }
        let text = text.get(..text.floor_char_boundary(LONGEST_TEXT)).unwrap_or(text).to_owned();
        let kind = classify(&text, &origin);
        let entities = Rules.entities(&text);
        let (vector, nearest) = (None, None);
        let size = tokens(&text);
        let turn = Turn { text: &text, kind, tokens: size, entities: &entities, vector, nearest };
        let explanation = self.session.score(turn);
        Some(Fragment {
            facts: facts(&id, &origin, &text, at),
            id,
            origin,
            kind,
            at,
            tokens: u32::try_from(size).unwrap_or(u32::MAX),
            text,
            entities,
            importance: if kind.is_pinned() { 1.0 } else { explanation.score.clamp(0.0, 1.0) },
            explanation: Some(explanation),
        })
    }
}

/// What a user states; what a model or a tool says is no fact about anybody.
fn facts(id: &FragmentId, origin: &Origin, text: &str, at: Timestamp) -> Vec<Fact> {
    if *origin != Origin::User {
        return Vec::new();
    }
    let fact = |(number, stated): (u32, memory_core::fact::Stated)| Fact {
        id: FactId { source: id.clone(), number },
        subject: stated.subject,
        attribute: stated.attribute,
        value: stated.value,
        valid_from: at,
        invalid_from: None,
        supersedes: None,
        superseded_by: None,
    };
    (0..).zip(stated(text)).map(fact).collect()
}

type Part<'t> = (Origin, &'t str);

/// The parts of a group; none while one of its calls is open.
fn parts<'t>(thread: &'t Thread, logged: &'t Logged) -> Option<Vec<Part<'t>>> {
    Some(match logged {
        Logged::User { text, .. } => vec![(Origin::User, text)],
        // Words of the runtime say nothing that is worth finding.
        Logged::Note { .. } => Vec::new(),
        Logged::Turn { text, calls, .. } => {
            let mut parts = vec![(Origin::Model, text.as_str())];
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
    let text = if FROM_MEMORY.contains(&tool.as_str()) { "" } else { closed.content.as_str() };
    Some((Origin::Tool { tool }, text))
}

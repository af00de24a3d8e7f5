//! The order of questions. The first that has an answer decides.

use proto::fact::Fact;

use crate::calls;
use crate::next_turn;
use crate::open_turn;
use crate::stop;
use crate::view::{Branch, Decision, View};

/// The next step for a thread.
///
/// Carrying a step out and asking again always comes to `Rest`, `HandBack` or `Reason`: each other
/// step changes the fold, the schedule, or what is known of the owner or the answer.
pub fn decide(view: &View<'_>) -> Decision {
    park(view)
        .or_else(|| stop::decide(view))
        .or_else(|| open_turn::decide(view))
        .or_else(|| calls::decide(view))
        .unwrap_or_else(|| next_turn::decide(view))
}

/// A record that nobody can decode is set aside first, so that every other planner folds the same.
fn park(view: &View<'_>) -> Option<Decision> {
    if view.thread.run.as_ref().is_some_and(|run| run.open.is_some()) {
        return None;
    }
    let (sequence, why) = view.thread.poison.first_key_value()?;
    let fact = Fact::Parked { sequence: *sequence, why: why.clone() };
    Some(Decision::fact(Branch::Park, fact))
}

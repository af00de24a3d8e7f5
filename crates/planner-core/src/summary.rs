//! One line per action: what was called, with what, and what came of it.

use proto::error_code::ErrorCode;
use proto::hash::canonical;
use proto::observation::Observation;
use serde_json::{Map, Value};

use crate::thread::{Call, Thread};

/// Characters of arguments in a line.
const ARGUMENTS: usize = 120;
/// Characters of a result in a line.
pub(crate) const RESULT: usize = 160;

/// Lines of all closed calls of the active run, in order.
pub fn lines_of_run(thread: &Thread) -> Vec<String> {
    let Some(run) = thread.run.as_ref().map(|run| run.number) else { return Vec::new() };
    let mut calls: Vec<&Call> = thread.calls.values().filter(|call| call.run == run).collect();
    calls.sort_by_key(|call| (call.turn, call.position));
    calls.into_iter().filter_map(line).collect()
}

/// The line of one call; none while it is open.
pub fn line(call: &Call) -> Option<String> {
    let observation = call.closed.as_ref()?;
    Some(action_line(&call.requested.tool, &call.requested.arguments, observation))
}

/// One action, its arguments and its observation in a line.
pub fn action_line(
    tool: &str,
    arguments: &Map<String, Value>,
    observation: &Observation,
) -> String {
    let arguments = canonical(&Value::Object(arguments.clone()));
    let verdict = observation.code.map_or("ok", ErrorCode::as_str);
    format!(
        "- {tool}({}) -> {verdict}: {}",
        cut(&arguments, ARGUMENTS),
        cut(&one_line(&observation.content), RESULT)
    )
}

pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// At most `most` characters, with an ellipsis when something was cut.
pub fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{kept}…")
}

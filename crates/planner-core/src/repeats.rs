//! Calls that keep coming back: the same call with the same result, or the same few calls in turn.

use proto::call::RequestedCall;
use proto::hash::arguments_hash;
use proto::ids::ArgumentsHash;
use serde_json::{Map, Value};

use crate::thread::{Call, Thread};

/// The longest pattern that is looked for: A-B-C-A-B-C.
const LONGEST_PATTERN: usize = 3;

/// How a call is recognised.
type Mark = (String, ArgumentsHash);

fn mark(tool: &str, arguments: &Map<String, Value>) -> Mark {
    (tool.to_owned(), arguments_hash(arguments))
}

/// Calls of a run in the order they were asked for.
fn of_run(thread: &Thread, run: u32) -> Vec<&Call> {
    let mut calls: Vec<&Call> = thread.calls.values().filter(|call| call.run == run).collect();
    calls.sort_by_key(|call| (call.turn, call.position));
    calls
}

/// Why a call must not be made again, if it must not.
///
/// `most` is how often the same call may bring the same result, and how often a pattern of up to
/// three calls may repeat, whatever it brings.
pub fn refusal(
    thread: &Thread,
    run: u32,
    tool: &str,
    arguments: &Map<String, Value>,
    most: u32,
) -> Option<String> {
    let wanted = mark(tool, arguments);
    let calls = of_run(thread, run);
    let most = usize::try_from(most.max(1)).unwrap_or(usize::MAX);
    if same_result_in_a_row(&calls, &wanted) >= most {
        return Some(format!(
            "{tool} was called {most} times with these arguments and brought the same result each \
             time. It was not called again: use the result, change the arguments, or answer."
        ));
    }
    let mut marks: Vec<Mark> =
        calls.iter().map(|call| mark(&call.requested.tool, &call.requested.arguments)).collect();
    marks.push(wanted);
    let period = (2..=LONGEST_PATTERN).find(|period| is_pattern(&marks, *period, most))?;
    Some(format!(
        "The last calls repeat a pattern of {period} calls for more than {most} times. {tool} was \
         not called again: change the approach, or answer with what is known."
    ))
}

/// How many of the newest calls with this mark brought one and the same result.
fn same_result_in_a_row(calls: &[&Call], wanted: &Mark) -> usize {
    let same = calls.iter().rev().filter(|call| {
        call.requested.tool == wanted.0 && arguments_hash(&call.requested.arguments) == wanted.1
    });
    let mut results = same.map(|call| call.closed.as_ref().map(|o| (o.code, o.content.as_str())));
    let Some(Some(newest)) = results.next() else { return 0 };
    results.take_while(|result| *result == Some(newest)).count().saturating_add(1)
}

/// Whether the newest marks are one pattern of `period` marks, more than `most` times.
fn is_pattern(marks: &[Mark], period: usize, most: usize) -> bool {
    let length = period.saturating_mul(most).saturating_add(1);
    let Some(start) = marks.len().checked_sub(length) else { return false };
    let Some(tail) = marks.get(start..) else { return false };
    let mut pairs = tail.iter().zip(tail.iter().skip(period));
    let varied = tail.iter().zip(tail.iter().skip(1)).any(|(a, b)| a != b);
    varied && pairs.all(|(earlier, later)| earlier == later)
}

/// Whether any of these calls was not asked for before in the run.
pub fn brings_new_call(thread: &Thread, run: u32, calls: &[RequestedCall]) -> bool {
    let own: Vec<_> = calls.iter().map(|call| &call.tool_call_id).collect();
    let before: Vec<Mark> = of_run(thread, run)
        .into_iter()
        .filter(|call| !own.contains(&call.id()))
        .map(|call| mark(&call.requested.tool, &call.requested.arguments))
        .collect();
    calls.iter().any(|call| !before.contains(&mark(&call.tool, &call.arguments)))
}

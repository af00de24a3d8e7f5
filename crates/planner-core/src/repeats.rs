//! Calls that keep coming back: the same call with the same result, or the same few calls in turn.

use proto::call::Terms;
use proto::error_code::ErrorCode;
use proto::hash::arguments_hash;
use proto::ids::{ArgumentsHash, ToolCallId};
use proto::observation::Observation;
use proto::tool::Effect;
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
/// `most` is how often the same call may bring the same result while nothing else is changed, and
/// how often a pattern of up to three calls may repeat and bring the same results. One that polls
/// something which moves is left to go on; the limits of the run bound it.
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
    let mut asked: Vec<Asked<'_>> = calls.iter().map(|call| Asked::of(call)).collect();
    asked.push(Asked { mark: wanted, result: None });
    let period = (2..=LONGEST_PATTERN).find(|period| is_pattern(&asked, *period, most))?;
    Some(format!(
        "The last calls repeat a pattern of {period} calls for more than {most} times and bring the \
         same results. {tool} was not called again: change the approach, or answer with what is \
         known."
    ))
}

/// How many of the newest calls with this mark brought one and the same result, since something
/// else was changed. Refusals are no results, or each would clear the way for the next call.
fn same_result_in_a_row(calls: &[&Call], wanted: &Mark) -> usize {
    let changed = calls.iter().rposition(|call| call.changed_something() && call.mark() != *wanted);
    let since = calls.iter().skip(changed.map_or(0, |at| at.saturating_add(1))).rev();
    let same = since.filter(|call| call.mark() == *wanted && !call.was_refused());
    let mut results = same.map(|call| call.result());
    let Some(Some(newest)) = results.next() else { return 0 };
    results.take_while(|result| *result == Some(newest)).count().saturating_add(1)
}

/// A call and what it brought, if that is known yet.
struct Asked<'a> {
    mark: Mark,
    result: Option<(Option<ErrorCode>, &'a str)>,
}

impl<'a> Asked<'a> {
    fn of(call: &'a Call) -> Self {
        Self { mark: call.mark(), result: call.result().filter(|_| !call.was_refused()) }
    }

    /// Whether this is the same call, and nothing shows that it brought something else.
    fn repeats(&self, earlier: &Self) -> bool {
        let differs = self.result.zip(earlier.result).is_some_and(|(now, then)| now != then);
        self.mark == earlier.mark && !differs
    }
}

/// Whether the newest calls are one pattern of `period` calls, more than `most` times.
fn is_pattern(asked: &[Asked<'_>], period: usize, most: usize) -> bool {
    let length = period.saturating_mul(most).saturating_add(1);
    let Some(start) = asked.len().checked_sub(length) else { return false };
    let Some(tail) = asked.get(start..) else { return false };
    let mut pairs = tail.iter().zip(tail.iter().skip(period));
    let varied = tail.iter().zip(tail.iter().skip(1)).any(|(a, b)| a.mark != b.mark);
    varied && pairs.all(|(earlier, later)| later.repeats(earlier))
}

/// Whether these calls are repetitions: each was asked for before in the run, and was refused for
/// it or brought the same as the last time.
pub fn bring_nothing_new(thread: &Thread, run: u32, calls: &[ToolCallId]) -> bool {
    let all = of_run(thread, run);
    calls.iter().all(|id| is_repetition(&all, id))
}

fn is_repetition(all: &[&Call], id: &ToolCallId) -> bool {
    let Some(at) = all.iter().position(|call| call.id() == id) else { return false };
    let (earlier, rest) = all.split_at(at);
    let Some(call) = rest.first() else { return false };
    let Some(last) = earlier.iter().rev().find(|other| other.mark() == call.mark()) else {
        return false;
    };
    call.was_refused() || call.result() == last.result()
}

impl Call {
    fn mark(&self) -> Mark {
        mark(&self.requested.tool, &self.requested.arguments)
    }

    fn was_refused(&self) -> bool {
        self.closed.as_ref().is_some_and(|o| o.code == Some(ErrorCode::RepeatedCall))
    }

    fn changed_something(&self) -> bool {
        let changes = |terms: &Terms| terms.effect != Effect::ReadOnly;
        self.requested.terms.as_ref().is_some_and(changes)
            && self.closed.as_ref().is_some_and(Observation::is_ok)
    }

    fn result(&self) -> Option<(Option<ErrorCode>, &str)> {
        self.closed.as_ref().map(|observation| (observation.code, observation.content.as_str()))
    }
}

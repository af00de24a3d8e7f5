//! An outcome against what a case expects.

use std::time::Duration;

use proto::model::{Finish, ModelErrorKind, ReadyCall};
use serde_json::{Map, Value, json};

use crate::case::Case;
use crate::run::Outcome;
use crate::server::Request;

/// Compares with the expectation and its alternatives. Answers the calls of the one that fits, or
/// what is wrong with the first.
pub(crate) fn outcome(
    case: &Case,
    outcome: &Outcome,
    requests: &[Request],
    spent: Duration,
) -> Result<Value, Vec<String>> {
    let mut first = None;
    for expect in case.outcomes() {
        let problems = one(case, &expect, outcome, requests, spent);
        if problems.is_empty() {
            return Ok(expect.get("tool_calls").cloned().unwrap_or_default());
        }
        first.get_or_insert(problems);
    }
    Err(first.unwrap_or_default())
}

fn one(
    case: &Case,
    expect: &Map<String, Value>,
    outcome: &Outcome,
    requests: &[Request],
    spent: Duration,
) -> Vec<String> {
    let mut problems = Vec::new();
    let mut compare = |what: &str, is_good: bool, got: String| {
        if !is_good {
            problems.push(format!("{what} is {got}"));
        }
    };
    let refusal = refusal(outcome);
    let text = outcome.text.strip_suffix(refusal.as_str()).unwrap_or(&outcome.text);
    compare("content", is_text(expect.get("content"), text), format!("{text:?}"));
    let reasoning = &outcome.reasoning;
    compare("reasoning", is_text(expect.get("reasoning"), reasoning), format!("{reasoning:?}"));
    if let Some(Value::String(expected)) = expect.get("refusal") {
        let is_error = expect.get("error").is_some_and(Value::is_object);
        compare("refusal", is_error || *expected == refusal, refusal.clone());
    }
    let all = case.expect.get("tool_calls").and_then(Value::as_array);
    let are_good = are_calls(expect.get("tool_calls"), all, &outcome.ready);
    compare("calls", are_good, calls(&outcome.ready));
    let broken = format!("{:?}", outcome.broken);
    compare("invalid calls", are_broken(expect.get("invalid_calls"), outcome), broken);
    let unknown = unknown(case, outcome);
    let expected = expect.get("unknown_tools").cloned().unwrap_or_else(|| json!([]));
    compare("unknown tools", unknown == expected, unknown.to_string());
    let finish = finish(outcome);
    compare("finish", expect.get("finish") == Some(&finish), finish.to_string());
    let is_error = is_error(expect.get("error"), case, outcome);
    compare("error", is_error, format!("{:?}", outcome.error));
    timing(expect, requests, spent, &mut problems);
    problems
}

fn timing(
    expect: &Map<String, Value>,
    requests: &[Request],
    spent: Duration,
    problems: &mut Vec<String>,
) {
    let number = |key: &str| expect.get(key).and_then(Value::as_u64);
    let count = u64::try_from(requests.len()).unwrap_or(u64::MAX);
    if number("requests").is_some_and(|expected| expected != count) {
        problems.push(format!("{count} requests were made"));
    }
    let gap = match requests {
        [first, second, ..] => second.at - first.at,
        [_] | [] => Duration::ZERO,
    };
    if number("min_delay_ms").is_some_and(|least| gap < Duration::from_millis(least)) {
        problems.push(format!("the second request came after {gap:?}"));
    }
    if number("max_delay_ms").is_some_and(|most| spent > Duration::from_millis(most)) {
        problems.push(format!("it took {spent:?}"));
    }
}

fn is_text(expected: Option<&Value>, got: &str) -> bool {
    match expected {
        Some(Value::String(expected)) => expected == "*" || expected == got,
        Some(_) | None => true,
    }
}

/// A refusal is said as text and marked among the provider's fields.
fn refusal(outcome: &Outcome) -> String {
    let opaque = outcome.end.as_ref().and_then(|end| end.opaque.as_ref());
    let refusal = opaque.and_then(|opaque| opaque.get("refusal")).and_then(Value::as_str);
    refusal.unwrap_or_default().to_owned()
}

fn calls(ready: &[ReadyCall]) -> String {
    let one = |call: &ReadyCall| format!("{}{}", call.name, Value::Object(call.arguments.clone()));
    format!("[{}]", ready.iter().map(one).collect::<Vec<_>>().join(", "))
}

/// A list, `*` for anything, or `prefix` for any leading part of `all`.
fn are_calls(expected: Option<&Value>, all: Option<&Vec<Value>>, got: &[ReadyCall]) -> bool {
    match expected {
        Some(Value::Array(calls)) => {
            calls.len() == got.len() && got.iter().zip(calls).all(|(got, call)| is_call(got, call))
        }
        Some(Value::String(word)) if word == "prefix" => all.is_some_and(|all| {
            got.len() <= all.len() && got.iter().zip(all).all(|(got, call)| is_call(got, call))
        }),
        Some(Value::String(word)) => word == "*",
        Some(_) | None => true,
    }
}

/// Whether a call is the one that was expected.
pub(crate) fn is_call(got: &ReadyCall, expected: &Value) -> bool {
    let name = expected.get("name").and_then(Value::as_str);
    let arguments = expected.get("arguments").and_then(Value::as_str).unwrap_or_default();
    let arguments = serde_json::from_str::<Value>(arguments).ok();
    name == Some(got.name.as_str()) && arguments == Some(Value::Object(got.arguments.clone()))
}

fn are_broken(expected: Option<&Value>, outcome: &Outcome) -> bool {
    let none = Vec::new();
    let expected = expected.and_then(Value::as_array).unwrap_or(&none);
    let text = |call: &Value, key: &str| {
        call.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    expected.len() == outcome.broken.len()
        && outcome.broken.iter().zip(expected).all(|(got, call)| {
            let raw = text(call, "raw");
            text(call, "name") == got.name && (raw == "*" || raw == got.raw)
        })
}

fn unknown(case: &Case, outcome: &Outcome) -> Value {
    let names = outcome.ready.iter().map(|call| &call.name);
    names.filter(|name| !case.tools.contains(name)).map(|name| json!(name)).collect()
}

/// The normalised reason: of a reply that ended well as it says, of an error what its kind implies.
fn finish(outcome: &Outcome) -> Value {
    if let Some(end) = &outcome.end {
        return json!(end.finish);
    }
    match outcome.error.as_ref().map(|error| error.kind) {
        Some(ModelErrorKind::Length) => json!(Finish::Length),
        Some(ModelErrorKind::ContentFilter) => json!(Finish::ContentFilter),
        Some(ModelErrorKind::EmptyResponse | ModelErrorKind::ContractViolation) => {
            json!(Finish::Stop)
        }
        Some(ModelErrorKind::ProviderError | ModelErrorKind::MalformedChunk) => json!("error"),
        Some(
            ModelErrorKind::HttpError
            | ModelErrorKind::Network
            | ModelErrorKind::Truncated
            | ModelErrorKind::Timeout(_)
            | ModelErrorKind::BadResponse,
        )
        | None => Value::Null,
    }
}

fn is_error(expected: Option<&Value>, case: &Case, outcome: &Outcome) -> bool {
    let (Some(Value::Object(expected)), Some(got)) = (expected, &outcome.error) else {
        return expected.is_none_or(Value::is_null) && outcome.error.is_none();
    };
    let is_late = matches!(got.kind, ModelErrorKind::Timeout(_));
    let mut kind = if is_late { json!("timeout") } else { json!(got.kind) };
    if case.mode == "text" && got.kind == ModelErrorKind::ContractViolation {
        kind = json!("unparsed_tool_markup");
    }
    let words = expected.get("message_contains").and_then(Value::as_str).unwrap_or_default();
    let status = expected.get("status").and_then(Value::as_u64);
    expected.get("kind") == Some(&kind)
        && expected.get("retryable") == Some(&json!(got.retryable))
        && got.message.contains(words)
        && status.is_none_or(|status| got.status.map(u64::from) == Some(status))
}

//! Checks an answer against the agent's output schema, within a deadline of its own.

use std::time::Duration;

use argument_check::{ArgumentCheck, describe};
use planner_core::view::Evaluated;
use serde_json::Value;

/// Compares in a thread of its own, so that a hostile schema cannot hold up other threads.
pub(crate) async fn evaluate(answer: String, schema: Value, limit: Duration) -> Evaluated {
    let check = tokio::task::spawn_blocking(move || compare(&answer, &schema));
    match tokio::time::timeout(limit, check).await {
        Ok(Ok(verdict)) => verdict,
        Ok(Err(_)) | Err(_) => Evaluated::Overrun,
    }
}

fn compare(answer: &str, schema: &Value) -> Evaluated {
    let Ok(check) = ArgumentCheck::of_any(schema) else { return Evaluated::Overrun };
    let value: Value = match serde_json::from_str(answer.trim()) {
        Ok(value) => value,
        Err(error) => return Evaluated::Breaks(format!("it is not JSON ({error})")),
    };
    match check.check_value(&value) {
        Ok(()) => Evaluated::Fits,
        Err(problems) => Evaluated::Breaks(describe(&problems)),
    }
}

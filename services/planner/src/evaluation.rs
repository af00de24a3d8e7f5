//! Checks an answer against the agent's output schema, within a deadline of its own.

use std::time::Duration;

use argument_check::{ArgumentCheck, check_json};
use planner_core::view::Evaluated;
use serde_json::Value;
use service_runtime::bounded::within;

/// Compares in a thread of its own, so that a hostile schema cannot hold up other threads.
pub(crate) async fn evaluate(answer: String, schema: Value, limit: Duration) -> Evaluated {
    let compared = within(limit, move || {
        let check = ArgumentCheck::of_any(&schema).ok()?;
        Some(check_json(&check, answer.as_bytes()))
    });
    match compared.await.flatten() {
        Some(Ok(())) => Evaluated::Fits,
        Some(Err(why)) => Evaluated::Breaks(why),
        None => Evaluated::Overrun,
    }
}

//! Checks a result against the schema that its tool promises, within a deadline of its own.

use std::time::Duration;

use argument_check::{ArgumentCheck, describe};
use bytes::Bytes;
use serde_json::Value;

/// How long a check may take; a result that takes longer is accepted and marked.
const LIMIT: Duration = Duration::from_secs(5);

/// How a result did.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Evaluated {
    /// It keeps the promise.
    Fits,
    /// It does not, and why.
    Breaks(String),
    /// The check took too long.
    Overrun,
}

/// Compares in a thread of its own, so that a hostile schema holds nobody up.
pub(crate) async fn evaluate(check: ArgumentCheck, result: Bytes) -> Evaluated {
    let compared = tokio::task::spawn_blocking(move || compare(&check, &result));
    match tokio::time::timeout(LIMIT, compared).await {
        Ok(Ok(verdict)) => verdict,
        Ok(Err(_)) | Err(_) => Evaluated::Overrun,
    }
}

fn compare(check: &ArgumentCheck, result: &[u8]) -> Evaluated {
    let value: Value = match serde_json::from_slice(result.trim_ascii()) {
        Ok(value) => value,
        Err(error) => return Evaluated::Breaks(format!("it is not one JSON value ({error}).")),
    };
    match check.check_value(&value) {
        Ok(()) => Evaluated::Fits,
        Err(problems) => Evaluated::Breaks(describe(&problems)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check() -> ArgumentCheck {
        let schema = serde_json::json!({
            "type": "object", "properties": {"pid": {"type": "integer"}}, "required": ["pid"]
        });
        ArgumentCheck::of_any(&schema).unwrap()
    }

    #[tokio::test]
    async fn a_result_that_keeps_its_promise_fits() {
        let result = Bytes::from_static(b" {\"pid\": 7}\n");
        assert_eq!(evaluate(check(), result).await, Evaluated::Fits);
    }

    #[tokio::test]
    async fn a_result_that_breaks_it_is_told_field_and_fix() {
        let broken = evaluate(check(), Bytes::from_static(b"{\"pid\": \"seven\"}")).await;
        let Evaluated::Breaks(why) = broken else { panic!("{broken:?}") };
        assert!(why.contains("`pid`") && why.contains("Fix:"), "{why}");
    }

    #[tokio::test]
    async fn a_result_that_is_no_json_breaks_it() {
        let broken = evaluate(check(), Bytes::from_static(b"all fine")).await;
        assert!(matches!(broken, Evaluated::Breaks(why) if why.contains("not one JSON value")));
    }
}

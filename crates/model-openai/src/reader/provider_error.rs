//! Errors as providers write them: objects, strings, flat objects, arrays, HTML.

use proto::error_code::ErrorCode;
use proto::model::{ModelError, ModelErrorKind};
use serde_json::Value;

const MOST_SHOWN: usize = 500;

/// An error that came inside a stream or body with status 200.
pub(crate) fn in_band(body: &Value) -> ModelError {
    ModelError {
        kind: ModelErrorKind::ProviderError,
        retryable: may_pass(body),
        retry_after: None,
        status: None,
        message: message(body).unwrap_or_else(|| "the provider reported an error".to_owned()),
        code: own_code(body),
    }
}

/// An error with nothing but a text.
pub(crate) fn in_words(kind: ModelErrorKind, retryable: bool, message: &str) -> ModelError {
    ModelError {
        kind,
        retryable,
        retry_after: None,
        status: None,
        message: shown(message),
        code: None,
    }
}

/// A code of ours that a rehearsal answers with; nothing else is taken from a stranger.
pub(crate) fn own_code(body: &Value) -> Option<ErrorCode> {
    let code = inner(body).get("code").and_then(Value::as_str)?;
    [ErrorCode::NoRuleMatched].into_iter().find(|own| own.as_str() == code)
}

/// What the provider says in a body of any shape.
pub(crate) fn message(body: &Value) -> Option<String> {
    match body {
        Value::String(text) if !text.trim().is_empty() => Some(shown(text)),
        Value::Object(map) => {
            let keys = ["message", "error", "msg", "detail", "errors", "title", "reason"];
            keys.iter()
                .filter_map(|key| map.get(*key))
                .find_map(message)
                .or_else(|| shown_code(body))
        }
        Value::Array(items) => {
            let all: Vec<String> = items.iter().filter_map(message).collect();
            (!all.is_empty()).then(|| shown(&all.join("; ")))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn shown_code(body: &Value) -> Option<String> {
    let code = body.get("code").or_else(|| body.get("type"))?;
    let words = code.as_str().map_or_else(|| code.to_string(), str::to_owned);
    (!words.is_empty()).then(|| shown(&format!("code {words}")))
}

fn shown(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(MOST_SHOWN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Whether the same request may succeed later.
fn may_pass(body: &Value) -> bool {
    let inner = inner(body);
    let words: Vec<String> = ["type", "code", "status"]
        .iter()
        .filter_map(|key| inner.get(*key).and_then(Value::as_str))
        .map(str::to_ascii_lowercase)
        .collect();
    // The model wrote a call that the provider refused: another try writes another one.
    if words.iter().any(|word| word == "tool_use_failed") {
        return true;
    }
    if is_permanent(&words) {
        return false;
    }
    let numbers = ["code", "status_code", "status"];
    let code = numbers.iter().find_map(|key| inner.get(*key).and_then(Value::as_u64));
    code.is_none_or(|code| !(400..500).contains(&code) || [408, 409, 425, 429].contains(&code))
}

/// Whether the words of an error say that waiting does not help.
fn is_permanent(words: &[String]) -> bool {
    let parts = [
        "insufficient_quota",
        "quota_exceeded",
        "billing",
        "authentication",
        "permission",
        "invalid_api_key",
        "invalid_request",
        "not_found",
        "context_length",
        "content_policy",
        "content_filter",
        "unsupported",
    ];
    words.iter().any(|word| parts.iter().any(|part| word.contains(part)))
}

/// Whether an HTTP error body says that waiting does not help although the status would.
pub(crate) fn is_out_of_quota(body: &Value) -> bool {
    let inner = inner(body);
    ["type", "code"]
        .iter()
        .filter_map(|key| inner.get(*key).and_then(Value::as_str))
        .any(|word| word.contains("insufficient_quota") || word.contains("billing"))
}

fn inner(body: &Value) -> &Value {
    match body {
        Value::Array(items) => items.first().map_or(body, inner),
        Value::Object(map) => map.get("error").filter(|error| error.is_object()).unwrap_or(body),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => body,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_message_is_found_in_every_shape() {
        let shapes = [
            json!({"error": {"message": "why", "code": 502}}),
            json!({"error": "why"}),
            json!({"object": "error", "message": "why"}),
            json!([{"error": {"message": "why"}}]),
            json!({"detail": [{"loc": ["body"], "msg": "why"}]}),
            json!({"detail": "why"}),
        ];
        for shape in shapes {
            assert_eq!(message(&shape).as_deref(), Some("why"), "{shape}");
        }
        assert_eq!(message(&json!({"error": {"code": "E1"}})).as_deref(), Some("code E1"));
    }

    #[test]
    fn a_code_of_ours_is_known_and_no_other() {
        let code = |code: &str| own_code(&json!({"error": {"message": "why", "code": code}}));
        assert_eq!(code("no_rule_matched"), Some(ErrorCode::NoRuleMatched));
        assert_eq!(code("internal"), None);
        assert_eq!(code("tool_use_failed"), None);
    }

    #[test]
    fn only_what_may_pass_is_worth_another_try() {
        let table = [
            (json!({"error": {"type": "overloaded_error", "code": 529}}), true),
            (json!({"error": {"message": "x", "code": 502}}), true),
            (json!({"error": "x"}), true),
            (json!({"error": {"code": 429}}), true),
            (json!({"error": {"type": "invalid_request_error", "code": "tool_use_failed"}}), true),
            (json!({"error": {"type": "insufficient_quota"}}), false),
            (json!({"error": {"type": "authentication_error", "code": 401}}), false),
            (json!({"code": 400}), false),
        ];
        for (body, expected) in table {
            assert_eq!(in_band(&body).retryable, expected, "{body}");
        }
    }
}

//! What the caller should send instead.

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::types::JsonType;
use serde_json::Value;

use crate::names::nearest;
use crate::rule::{cut, list, short};

/// How to repair a value that is there.
pub(crate) fn text(error: &ValidationError<'_>) -> String {
    let sent = error.instance();
    if let Kind::Type { kind } = error.kind() {
        return retyped(kind, sent);
    }
    if let Kind::Enum { options } = error.kind() {
        return chosen(options, sent);
    }
    if let Kind::Constant { expected_value } = error.kind() {
        return format!("send {}", short(expected_value));
    }
    format!("change the value {}", short(sent))
}

/// How to add a field that is not there.
pub(crate) fn missing(name: &str, schema: Option<&Value>) -> String {
    let Some(schema) = schema else { return format!("add `{name}`") };
    let of_type = schema.get("type").and_then(Value::as_str).map(|name| format!(" ({name})"));
    let about = schema.get("description").and_then(Value::as_str);
    let about = about.map(|text| format!(": {}", cut(text)));
    let example = schema.get("enum").map(|options| format!(", one of {}", list(options)));
    let parts = [of_type, example, about].into_iter().flatten().collect::<String>();
    format!("add `{name}`{parts}")
}

fn retyped(kind: &TypeKind, sent: &Value) -> String {
    let wanted = |one: JsonType| match kind {
        TypeKind::Single(only) => *only == one,
        TypeKind::Multiple(several) => several.iter().any(|any| any == one),
    };
    if wanted(JsonType::String) && (sent.is_number() || sent.is_boolean()) {
        return format!("put it in quotes: \"{sent}\"");
    }
    if let Some(text) = sent.as_str() {
        let inner = serde_json::from_str::<Value>(text).ok();
        let is_wanted =
            |value: &Value| wanted(JsonType::from(value)) || is_wanted_number(kind, value);
        if let Some(value) = inner.filter(is_wanted) {
            return format!("send {} without quotes", short(&value));
        }
    }
    if wanted(JsonType::Array) && !sent.is_array() {
        return format!("put it in a list: [{}]", short(sent));
    }
    format!("change the value {}", short(sent))
}

/// `5` is an integer and a number; only one of them is its type.
fn is_wanted_number(kind: &TypeKind, value: &Value) -> bool {
    let whole = value.is_i64() || value.is_u64();
    let fits = |one: JsonType| match one {
        JsonType::Number => value.is_number(),
        JsonType::Integer => whole,
        JsonType::Null
        | JsonType::Boolean
        | JsonType::String
        | JsonType::Array
        | JsonType::Object => false,
    };
    match kind {
        TypeKind::Single(one) => fits(*one),
        TypeKind::Multiple(several) => several.iter().any(fits),
    }
}

fn chosen(options: &Value, sent: &Value) -> String {
    let words = options.as_array().map(Vec::as_slice).unwrap_or_default();
    let words = words.iter().filter_map(Value::as_str);
    let meant = sent.as_str().and_then(|sent| nearest(sent, words));
    match meant {
        Some(meant) => format!("send \"{meant}\" instead of {}", short(sent)),
        None => format!("choose one of them instead of {}", short(sent)),
    }
}

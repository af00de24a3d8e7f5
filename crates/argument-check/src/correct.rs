//! What a caller certainly meant.

use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::types::JsonType;
use jsonschema::{ValidationError, Validator};
use serde_json::{Map, Value};

use crate::rule::short;

/// A value may have blanks around it and be of another type.
const ROUNDS: usize = 3;
/// Corrections of one call.
const MOST: usize = 20;

pub(crate) fn correct(
    validator: &Validator,
    arguments: Map<String, Value>,
) -> (Map<String, Value>, Vec<String>) {
    let sent = Value::Object(arguments);
    if validator.is_valid(&sent) {
        return (object(sent), Vec::new());
    }
    let mut value = sent.clone();
    for _ in 0..ROUNDS {
        let errors: Vec<(String, Value)> = validator
            .iter_errors(&value)
            .filter_map(|error| Some((error.instance_path().as_str().to_owned(), meant(&error)?)))
            .take(MOST)
            .collect();
        if errors.is_empty() {
            break;
        }
        for (at, meant) in errors {
            if let Some(place) = value.pointer_mut(&at) {
                *place = meant;
            }
        }
        if validator.is_valid(&value) {
            let mut words = Vec::new();
            tell(&sent, &value, "", &mut words);
            return (object(value), words);
        }
    }
    (object(sent), Vec::new())
}

fn object(value: Value) -> Map<String, Value> {
    if let Value::Object(object) = value { object } else { Map::new() }
}

/// The one value that a broken one can have meant.
fn meant(error: &ValidationError<'_>) -> Option<Value> {
    let sent = error.instance();
    if let Kind::Type { kind } = error.kind() {
        return retyped(kind, sent);
    }
    let text = sent.as_str()?;
    if let Kind::Enum { options } = error.kind() {
        return chosen(options.as_array()?, text);
    }
    if let Kind::Constant { expected_value } = error.kind() {
        return chosen(std::slice::from_ref(expected_value), text);
    }
    let may_be_blanks =
        matches!(error.kind(), Kind::Pattern { .. } | Kind::Format { .. } | Kind::MaxLength { .. });
    let trimmed = text.trim();
    (may_be_blanks && trimmed.len() < text.len()).then(|| Value::from(trimmed))
}

/// A text that writes a value of the wanted type in the one way in which it is written, or a whole
/// number where a text is wanted.
fn retyped(kind: &TypeKind, sent: &Value) -> Option<Value> {
    let wanted = |one: JsonType| match kind {
        TypeKind::Single(only) => *only == one,
        TypeKind::Multiple(several) => several.iter().any(|any| any == one),
    };
    if sent.is_i64() || sent.is_u64() {
        return wanted(JsonType::String).then(|| Value::from(sent.to_string()));
    }
    let text = sent.as_str()?.trim();
    let value: Value = serde_json::from_str(&text.to_ascii_lowercase()).ok()?;
    let whole = value.is_i64() || value.is_u64();
    let fits = match &value {
        Value::Number(_) => wanted(JsonType::Number) || (whole && wanted(JsonType::Integer)),
        Value::Bool(_) => wanted(JsonType::Boolean),
        Value::Null | Value::String(_) | Value::Array(_) | Value::Object(_) => false,
    };
    let written = value.to_string();
    let exact = written == text || value.is_boolean();
    (fits && exact).then_some(value)
}

/// The only option that differs in case or in blanks around it.
fn chosen(options: &[Value], text: &str) -> Option<Value> {
    let plain = text.trim().to_lowercase();
    let is_meant = |option: &&Value| match option {
        Value::String(word) => word.trim().to_lowercase() == plain,
        Value::Number(number) => number.to_string() == plain,
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => false,
    };
    let mut fitting = options.iter().filter(is_meant);
    match (fitting.next(), fitting.next()) {
        (Some(only), None) => Some(only.clone()),
        (Some(_) | None, _) => None,
    }
}

/// Each value that changed, in words.
fn tell(before: &Value, after: &Value, at: &str, words: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            for (name, value) in new {
                let old = old.get(name).unwrap_or(&Value::Null);
                tell(old, value, &format!("{at}/{name}"), words);
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                tell(old, new, &format!("{at}/{index}"), words);
            }
        }
        (old, new) if old != new => {
            words.push(format!("`{}` {} became {}", crate::field(at), short(old), short(new)));
        }
        (_, _) => {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use crate::ArgumentCheck;

    use super::*;

    fn check() -> ArgumentCheck {
        ArgumentCheck::new(&json!({
            "type": "object",
            "properties": {
                "count": {"type": "integer", "maximum": 10},
                "ratio": {"type": "number"},
                "unit": {"enum": ["metric", "Imperial", "imperial "]},
                "on": {"type": "boolean"},
                "host": {"type": "string", "pattern": "^[a-z]+$"},
                "list": {"type": "array", "items": {"type": "integer"}},
            },
            "additionalProperties": false,
        }))
        .unwrap()
    }

    fn corrected(arguments: Value) -> (Value, Vec<String>) {
        let (value, words) = check().correct(object(arguments));
        (Value::Object(value), words)
    }

    #[test]
    fn what_can_mean_one_thing_only_is_put_right_and_told() {
        let sent = json!({"count": " 5", "ratio": "0.5", "unit": " METRIC", "on": "True",
            "host": "web ", "list": [1, "2"]});
        let meant = json!({"count": 5, "ratio": 0.5, "unit": "metric", "on": true, "host": "web",
            "list": [1, 2]});
        let words = [
            "`count` \" 5\" became 5",
            "`host` \"web \" became \"web\"",
            "`list[1]` \"2\" became 2",
            "`on` \"True\" became true",
            "`ratio` \"0.5\" became 0.5",
            "`unit` \" METRIC\" became \"metric\"",
        ];
        assert_eq!(corrected(sent), (meant, words.map(str::to_owned).to_vec()));
    }

    #[test]
    fn what_is_lossy_or_ambiguous_stays_as_it_was_sent() {
        for sent in [
            json!({"count": "five"}),
            json!({"count": "5.0"}),
            json!({"count": "05"}),
            json!({"count": "50"}),
            json!({"count": 5.5}),
            json!({"unit": "IMPERIAL"}),
            json!({"host": "w b"}),
            json!({"on": "yes"}),
            json!({"count": null}),
            json!({"count": "5", "stray": 1}),
            json!({"ratio": "0.10"}),
        ] {
            assert_eq!(corrected(sent.clone()), (sent, vec![]));
        }
    }

    proptest! {
        #[test]
        fn what_is_valid_is_never_touched_and_a_correction_is_valid(
            count in any::<i32>(), text in "[ -~]{0,8}",
        ) {
            let sent = json!({"count": text, "ratio": count, "host": text});
            let (value, words) = corrected(sent.clone());
            prop_assert_eq!(words.is_empty(), value == sent);
            if value != sent {
                prop_assert!(check().check(&object(value.clone())).is_ok());
            }
            let again = corrected(value.clone());
            prop_assert_eq!(again, (value, vec![]));
        }
    }
}

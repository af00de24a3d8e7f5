//! Equal values have equal hashes, whatever their key order.

use proptest::prelude::*;
use proto::hash::{arguments_hash, artifact_id, canonical, sha256_hex};
use serde_json::{Map, Value, json};

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// The same value with the fields of every object put in the other way round.
fn turned(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().rev().map(|(name, value)| (name.clone(), turned(value)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(turned).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

proptest! {
    #[test]
    fn key_order_does_not_count(value in any_value()) {
        prop_assert_eq!(canonical(&value), canonical(&turned(&value)));
    }

    /// The canonical text is the value, and no other value has it.
    #[test]
    fn canonical_text_is_the_value(value in any_value(), other in any_value()) {
        let read: Value = serde_json::from_str(&canonical(&value)).unwrap();
        prop_assert_eq!(canonical(&read), canonical(&value));
        prop_assert_eq!(canonical(&value) == canonical(&other), value == other);
    }
}

#[test]
fn text_order_in_a_file_does_not_count_and_list_order_does() {
    let read = |text: &str| {
        let value: Value = serde_json::from_str(text).unwrap();
        arguments_hash(value.as_object().unwrap())
    };
    assert_eq!(
        read(r#"{"b": [1, {"d": 1, "c": 2}], "a": "x"}"#),
        read(r#"{"a":"x","b":[1,{"c":2,"d":1}]}"#)
    );
    assert_ne!(read(r#"{"a": [1, 2]}"#), read(r#"{"a": [2, 1]}"#));
    assert_ne!(read(r#"{"a": 1}"#), read(r#"{"a": "1"}"#));
    assert_ne!(read(r#"{"a": 1}"#), read(r#"{"a": 1.0}"#));
    assert_ne!(read(r#"{"a": null}"#), read("{}"));
}

#[test]
fn the_text_is_the_known_one() {
    let value = json!({"b": 1, "a": {"d": "\u{e4}\n", "c": [true, null]}});
    assert_eq!(canonical(&value), r#"{"a":{"c":[true,null],"d":"ä\n"},"b":1}"#);
    let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    assert_eq!((sha256_hex(b"").as_str(), artifact_id(b"").as_str()), (empty, empty));
}

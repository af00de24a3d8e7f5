//! What may be read, what has to be handed back, what has to be parked.

use proptest::prelude::*;
use proto::envelope::{DecodeError, Envelope, MIN_READER, VERSION};
use proto::record::Record;
use serde_json::{Value, json};

use crate::samples::{envelope, records};

/// Adds a field to every object on the way down, except to free-form values.
fn strew(value: &mut Value) {
    const FREE: [&str; 2] = ["arguments", "opaque"];
    match value {
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                if !FREE.contains(&name.as_str()) {
                    strew(value);
                }
            }
            fields.insert("from_the_future".into(), json!({"a": [1]}));
        }
        Value::Array(items) => items.iter_mut().for_each(strew),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// An enum written as `{variant: value}` has one field, so nothing may stand beside it.
fn spare_variants(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if fields.contains_key("answered") {
                fields.remove("from_the_future");
            }
            fields.values_mut().for_each(spare_variants);
        }
        Value::Array(items) => items.iter_mut().for_each(spare_variants),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn unknown_fields_pass_everywhere() {
    for (name, record) in records() {
        let envelope = envelope(record);
        let mut value: Value = serde_json::from_slice(&envelope.encode()).unwrap();
        strew(&mut value);
        spare_variants(&mut value);
        let text = value.to_string();
        assert_eq!(Envelope::decode(text.as_bytes()), Ok(envelope), "{name}");
    }
}

#[test]
fn a_newer_record_that_this_reader_may_act_on_is_read() {
    let mut value = serde_json::to_value(envelope(Record::Tick)).unwrap();
    value["v"] = json!(VERSION + 5);
    let read = Envelope::decode(value.to_string().as_bytes()).unwrap();
    assert_eq!((read.v, read.min_reader, read.body), (VERSION + 5, MIN_READER, Record::Tick));
}

#[test]
fn a_record_that_is_too_new_is_handed_back_whatever_it_holds() {
    let min_reader = VERSION + 1;
    let too_new = Err(DecodeError::TooNew { min_reader });
    for body in [json!({"kind": "tick"}), json!({"kind": "never heard of"}), json!(5), json!(null)]
    {
        let value =
            json!({"v": 9, "min_reader": min_reader, "nonce": "00ff00ff00ff00ff", "body": body});
        assert_eq!(Envelope::decode(value.to_string().as_bytes()), too_new);
    }
    let nothing_else = json!({"min_reader": min_reader}).to_string();
    assert_eq!(Envelope::decode(nothing_else.as_bytes()), too_new);
}

fn is_malformed(bytes: &[u8]) -> bool {
    matches!(Envelope::decode(bytes), Err(DecodeError::Malformed(_)))
}

#[test]
fn what_nobody_can_read_is_malformed() {
    let with = |body: Value| {
        json!({"v": 1, "min_reader": 1, "nonce": "00ff00ff00ff00ff", "body": body}).to_string()
    };
    assert!(Envelope::decode(with(json!({"kind": "tick"})).as_bytes()).is_ok());
    for text in [
        String::new(),
        "{".into(),
        "null".into(),
        "[]".into(),
        "{\"min_reader\": 1}".into(),
        "{\"min_reader\": -1}".into(),
        "{\"min_reader\": 70000}".into(),
        with(json!(null)),
        with(json!({"kind": "never heard of"})),
        with(json!({"kind": "fact", "fact": "never heard of"})),
        with(json!({"kind": "observation"})),
        with(
            json!({"kind": "observation", "tool_call_id": "TOO LONG FOR IT", "attempt": 1, "content": ""}),
        ),
        with(json!({"kind": "tick"})).replace("00ff00ff00ff00ff", "00FF"),
    ] {
        assert!(is_malformed(text.as_bytes()), "{text}");
    }
    assert!(is_malformed(&[0xff, 0xfe, 0x00]));
}

#[test]
fn the_nonce_can_be_read_from_what_else_cannot() {
    let text = json!({"min_reader": 99, "nonce": "00ff00ff00ff00ff", "body": 1}).to_string();
    assert_eq!(Envelope::nonce_of(text.as_bytes()).unwrap().as_str(), "00ff00ff00ff00ff");
    assert_eq!(Envelope::nonce_of(b"{\"nonce\": 1}"), None);
    assert_eq!(Envelope::nonce_of(b"\xff"), None);
}

proptest! {
    #[test]
    fn no_bytes_break_the_reader(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(is_malformed(&bytes));
    }

    /// A record with a hole, a cut or a slip is read, handed back or malformed, and never breaks.
    #[test]
    fn no_damage_breaks_the_reader(which in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
        let records = records();
        let (_, record) = which.get(&records);
        let mut bytes = envelope(record.clone()).encode();
        let at = at.index(bytes.len());
        if cut {
            bytes.truncate(at);
            prop_assert!(is_malformed(&bytes));
        } else {
            bytes[at] = byte;
            if let Ok(read) = Envelope::decode(&bytes) {
                prop_assert_eq!(Envelope::decode(&read.encode()), Ok(read));
            }
        }
    }
}

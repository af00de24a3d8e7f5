//! The generated schemas accept what is written and refuse what is not.

use jsonschema::Validator;
use serde_json::Value;

use crate::fixtures::{checked_in, kind};

/// A kept state is no message: only builds of this program read it.
fn messages() -> impl Iterator<Item = (String, String)> {
    checked_in().into_iter().filter(|(name, _)| kind(name) != "saved")
}

fn validator(kind: &str) -> Validator {
    let schemas = proto::schema::all();
    let name = format!("{kind}.json");
    let (_, schema) = schemas.iter().find(|(file, _)| *file == name).unwrap();
    jsonschema::options().offline().build(schema).unwrap()
}

#[test]
fn every_fixture_meets_its_schema() {
    for (name, text) in messages() {
        let value: Value = serde_json::from_str(&text).unwrap();
        let validator = validator(kind(&name));
        let errors: Vec<String> =
            validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert_eq!(errors, Vec::<String>::new(), "{name}");
    }
}

/// Or the test above would pass with schemas that accept everything.
#[test]
fn a_fixture_without_one_of_its_fields_breaks_its_schema() {
    for (name, text) in messages() {
        let value: Value = serde_json::from_str(&text).unwrap();
        let validator = validator(kind(&name));
        let required: &[&str] = match kind(&name) {
            "envelope" => &["v", "min_reader", "nonce", "body"],
            "event" => &["thread", "sequence", "type"],
            "agent" => &["name", "role", "model", "tools", "fingerprint"],
            "registration" => &["worker", "tools"],
            "freeze" => &["target", "at"],
            "live_text" => &["started", "turn", "offset", "channel", "delta"],
            "live_notice" => &["started", "turn", "notice"],
            "hint" => &["hint"],
            other => panic!("no such message: {other}"),
        };
        for field in required {
            let mut broken = value.clone();
            assert!(broken.as_object_mut().unwrap().remove(*field).is_some(), "{name} {field}");
            assert!(!validator.is_valid(&broken), "{name} without {field}");
        }
    }
}

//! Every message as bytes, checked in. A fixture is never edited or deleted: a change that makes
//! one fail here breaks processes and journals of the version that wrote it.
//! `UPDATE_EXPECT=1` writes the fixtures of new messages.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use expect_test::expect_file;
use proto::agent::Agent;
use proto::envelope::Envelope;
use proto::event::ThreadEvent;
use proto::freeze::Freeze;
use proto::live::{Hint, LiveText};
use proto::notice::LiveNotice;
use proto::saved::SavedThread;
use proto::tool::Registration;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{samples, saved};

pub(crate) fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v1")
}

/// Name and text of every fixture that is checked in.
pub(crate) fn checked_in() -> Vec<(String, String)> {
    let files = fs::read_dir(folder()).unwrap().map(|file| file.unwrap().path());
    let mut all: Vec<(String, String)> = files
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect();
    all.sort();
    all
}

/// What kind of message a fixture holds.
pub(crate) fn kind(name: &str) -> &str {
    name.split('.').next().unwrap()
}

fn again<T: DeserializeOwned + Serialize>(text: &str) -> Value {
    let value: T = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    serde_json::to_value(value).unwrap()
}

#[test]
fn every_message_is_written_as_it_was() {
    for (name, text) in samples::all().into_iter().chain(saved::all()) {
        expect_file![folder().join(format!("{name}.json"))].assert_eq(&format!("{text}\n"));
    }
}

#[test]
fn every_fixture_is_read_and_written_again_unchanged() {
    let fixtures = checked_in();
    assert!(fixtures.len() >= samples::all().len() + saved::all().len());
    for (name, text) in fixtures {
        let written = match kind(&name) {
            "envelope" => {
                let envelope = Envelope::decode(text.as_bytes()).unwrap();
                serde_json::from_slice(&envelope.encode()).unwrap()
            }
            "event" => again::<ThreadEvent>(&text),
            "agent" => again::<Agent>(&text),
            "registration" => again::<Registration>(&text),
            "freeze" => again::<Freeze>(&text),
            "live_text" => again::<LiveText>(&text),
            "live_notice" => again::<LiveNotice>(&text),
            "hint" => again::<Hint>(&text),
            "saved" => {
                let saved = SavedThread::decode(text.as_bytes()).unwrap();
                serde_json::from_slice(&saved.encode()).unwrap()
            }
            other => panic!("no such message: {other}"),
        };
        assert_eq!(written, serde_json::from_str::<Value>(&text).unwrap(), "{name}");
    }
}

/// The tags that tell variants apart, as the schemas list them.
fn tags(schema: &Value, found: &mut BTreeSet<(String, String)>) {
    const TAGS: [&str; 7] = ["kind", "fact", "start", "input", "hint", "notice", "type"];
    match schema {
        Value::Object(fields) => {
            if let Some(properties) = fields.get("properties").and_then(Value::as_object) {
                for tag in TAGS {
                    let value = properties.get(tag).and_then(|one| one.get("const"));
                    found.extend(value.and_then(Value::as_str).map(|v| (tag.into(), v.into())));
                }
            }
            fields.values().for_each(|value| tags(value, found));
        }
        Value::Array(items) => items.iter().for_each(|item| tags(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn holds(value: &Value, tag: &str, word: &str) -> bool {
    match value {
        Value::Object(fields) => {
            fields.get(tag).is_some_and(|found| found == word)
                || fields.values().any(|value| holds(value, tag, word))
        }
        Value::Array(items) => items.iter().any(|item| holds(item, tag, word)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[test]
fn every_variant_of_the_wire_has_a_fixture() {
    let mut wanted = BTreeSet::new();
    for (_, schema) in proto::schema::all() {
        tags(&schema, &mut wanted);
    }
    // A piece of live text becomes an event in the reader, from a message that has its own fixture.
    wanted.remove(&("type".to_owned(), "delta".to_owned()));
    let texts = checked_in();
    let values: Vec<Value> =
        texts.iter().map(|(_, text)| serde_json::from_str(text).unwrap()).collect();
    let missing: Vec<_> = wanted
        .iter()
        .filter(|(tag, word)| !values.iter().any(|value| holds(value, tag, word)))
        .collect();
    assert!(wanted.len() > 25, "{wanted:?}");
    assert_eq!(missing, Vec::<&(String, String)>::new());
}

//! What is kept of an answer: the values that JSON pointers name.

use definitions::http::Pick;
use definitions::template::shown;
use serde_json::{Map, Value};

/// Why nothing could be picked; what is there in its place.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Nothing {
    /// The body is no JSON.
    Unreadable(String),
    /// It is, without what was asked for.
    Missing(String),
}

/// Picks from a body. `None` for the whole body.
pub(super) fn pick(pick: &Pick, body: &[u8]) -> Option<Result<String, Nothing>> {
    match pick {
        Pick::Whole => None,
        Pick::One(pointer) => Some(parse(body).and_then(|value| one(&value, pointer))),
        Pick::Several(pointers) => Some(parse(body).and_then(|value| several(&value, pointers))),
    }
}

fn parse(body: &[u8]) -> Result<Value, Nothing> {
    serde_json::from_slice(body)
        .map_err(|error| Nothing::Unreadable(format!("its body is {}", what_else(body, &error))))
}

/// What a body is that is no JSON.
fn what_else(body: &[u8], error: &serde_json::Error) -> String {
    let start = body.trim_ascii_start();
    let start = String::from_utf8_lossy(start.get(..start.len().min(256)).unwrap_or_default());
    let start = start.to_ascii_lowercase();
    if body.is_empty() {
        "empty where JSON is expected".to_owned()
    } else if start.starts_with("<!doctype html") || start.starts_with("<html") {
        "an HTML page where JSON is expected, perhaps one for people to sign in".to_owned()
    } else if start.starts_with('<') {
        "XML or HTML where JSON is expected".to_owned()
    } else {
        format!("no valid JSON: {error}")
    }
}

fn one(value: &Value, pointer: &str) -> Result<String, Nothing> {
    let found = value.pointer(pointer).ok_or_else(|| missing(value, pointer))?;
    Ok(shown(found).unwrap_or_else(|| "null".to_owned()))
}

/// Named by the last part of each pointer, or by all of it where that is not unique. A value that
/// is not there is left out, unless all are.
fn several(value: &Value, pointers: &[String]) -> Result<String, Nothing> {
    let last = |pointer: &str| pointer.rsplit('/').next().unwrap_or_default().to_owned();
    let mut picked = Map::new();
    for pointer in pointers {
        let name = last(pointer);
        let is_unique = pointers.iter().filter(|other| last(other) == name).count() == 1;
        if let Some(found) = value.pointer(pointer) {
            picked.insert(if is_unique { name } else { pointer.clone() }, found.clone());
        }
    }
    match pointers.first() {
        Some(pointer) if picked.is_empty() => Err(missing(value, pointer)),
        Some(_) | None => Ok(Value::Object(picked).to_string()),
    }
}

fn missing(value: &Value, pointer: &str) -> Nothing {
    const MOST_NAMES: usize = 20;
    let there = match value {
        Value::Object(fields) => {
            let names: Vec<&str> = fields.keys().take(MOST_NAMES).map(String::as_str).collect();
            format!("an object of {}", names.join(", "))
        }
        Value::Array(items) => format!("a list of {}", items.len()),
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "a truth value".to_owned(),
        Value::Number(_) => "a number".to_owned(),
        Value::String(_) => "a text".to_owned(),
    };
    Nothing::Missing(format!("its body has nothing at `{pointer}`: it is {there}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &[u8] = br#"{"id": 7, "items": [{"name": "a"}, {"name": "b"}], "note": "hi"}"#;

    fn picked(pointers: &[&str]) -> Result<String, Nothing> {
        let pointers: Vec<String> = pointers.iter().map(|pointer| (*pointer).to_owned()).collect();
        pick(&Pick::Several(pointers), BODY).unwrap()
    }

    #[test]
    fn one_value_stands_for_itself() {
        let one = |pointer: &str| pick(&Pick::One(pointer.to_owned()), BODY).unwrap();
        assert_eq!(one("/note").unwrap(), "hi");
        assert_eq!(one("/items/1").unwrap(), r#"{"name":"b"}"#);
        let why = "its body has nothing at `/data`: it is an object of id, items, note";
        assert_eq!(one("/data").unwrap_err(), Nothing::Missing(why.to_owned()));
    }

    #[test]
    fn several_values_are_named_and_may_be_absent() {
        assert_eq!(picked(&["/id", "/note", "/none"]).unwrap(), r#"{"id":7,"note":"hi"}"#);
        let both = picked(&["/items/0/name", "/items/1/name"]).unwrap();
        assert_eq!(both, r#"{"/items/0/name":"a","/items/1/name":"b"}"#);
        assert!(picked(&["/none"]).is_err());
    }
}

//! Writes YAML that reads well: a line for each field, text in double quotes.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// Longest list that stays on one line.
const SHORT: usize = 80;

/// The fields of a map, each line indented by `indent` blanks.
pub(super) fn fields(fields: &Map<String, Value>, indent: usize) -> String {
    fields.iter().map(|(name, value)| field(name, value, indent)).collect()
}

/// One field with its value.
pub(super) fn field(name: &str, value: &Value, indent: usize) -> String {
    let head = format!("{}{}:", " ".repeat(indent), key(name));
    match value {
        Value::Object(inner) if !inner.is_empty() && !is_short(value) => {
            format!("{head}\n{}", fields(inner, indent.saturating_add(2)))
        }
        Value::Array(items) if !items.is_empty() && !is_short(value) => {
            let items = items.iter().map(|item| self::item(item, indent.saturating_add(2)));
            format!("{head}\n{}", items.collect::<String>())
        }
        Value::Object(_)
        | Value::Array(_)
        | Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_) => format!("{head} {}\n", flow(value)),
    }
}

fn item(value: &Value, indent: usize) -> String {
    let blanks = " ".repeat(indent);
    match value {
        Value::Object(inner) if !inner.is_empty() && !is_short(value) => {
            let text = fields(inner, indent.saturating_add(2));
            format!("{blanks}- {}", text.trim_start())
        }
        Value::Array(_)
        | Value::Object(_)
        | Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_) => format!("{blanks}- {}\n", flow(value)),
    }
}

fn is_short(value: &Value) -> bool {
    let nested = match value {
        Value::Array(items) => items.iter().any(|item| item.is_object() || item.is_array()),
        Value::Object(fields) => fields.values().any(|field| field.is_object() || field.is_array()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    };
    !nested && flow(value).len() <= SHORT
}

/// On one line; JSON is YAML, apart from characters that YAML does not take as they are.
fn flow(value: &Value) -> String {
    match value {
        Value::Object(fields) if fields.is_empty() => "{}".to_owned(),
        Value::Object(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|(name, value)| format!("{}: {}", key(name), flow(value)))
                .collect();
            format!("{{ {} }}", fields.join(", "))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(flow).collect();
            format!("[{}]", items.join(", "))
        }
        Value::String(text) => quoted(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

fn quoted(text: &str) -> String {
    let json = Value::from(text).to_string();
    let mut quoted = String::with_capacity(json.len());
    for c in json.chars() {
        let is_odd = matches!(
            c,
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
        );
        if is_odd {
            write!(quoted, "\\u{:04x}", u32::from(c)).unwrap_or_default();
        } else {
            quoted.push(c);
        }
    }
    quoted
}

/// A name as it is where YAML cannot take it for anything else.
fn key(name: &str) -> String {
    let is_plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    let is_word = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"]
        .contains(&name.to_ascii_lowercase().as_str());
    if is_plain && !is_word { name.to_owned() } else { quoted(name) }
}

/// A comment, one line for each of `text`.
pub(super) fn comment(text: &str, indent: usize) -> String {
    let blanks = " ".repeat(indent);
    let line = |line: &str| {
        let clean: String = line.chars().filter(|c| !c.is_control()).collect();
        format!("{blanks}# {clean}\n")
    };
    text.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use definitions::yaml::read;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_written_is_read_as_it_was() {
        let value = json!({
            "plain": "words", "no": "yes", "": "empty name", "a b": [1, 2.5, true, null],
            "text": "# : {x} \"q\" \\ \n\t \u{2028}\u{feff}\u{85}é\u{1F600}", "empty": {}, "none": [],
            "list": [{"a": {"b": [[1], {"c": "d"}]}}, "x", []], "long": vec!["words of some length"; 9],
            "multi": "a\nb\n", "date": "2026-01-01", "version": "1.0", "tilde": "~",
        });
        let text = fields(value.as_object().unwrap(), 0);
        assert_eq!(read("x", &text).unwrap().to_json(), value, "{text}");
    }

    #[test]
    fn a_comment_stays_one() {
        assert_eq!(comment("a\r\nb: c\u{1b}[0m", 2), "  # a\n  # b: c[0m\n");
    }
}

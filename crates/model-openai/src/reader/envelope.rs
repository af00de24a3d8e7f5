//! A call written out as text: which tool it names and with which arguments.

use serde_json::{Map, Value};

use super::arguments::read_object;
use super::lenient;
use super::names::Tools;

/// A call that was found in text.
pub(crate) type Named = (String, Map<String, Value>);

/// Keys that an object around a call may begin with.
pub(crate) const KEYS: [&str; 12] = [
    "name",
    "tool",
    "tool_name",
    "function",
    "type",
    "id",
    "arguments",
    "parameters",
    "args",
    "input",
    "tool_calls",
    "recipient_name",
];

/// Keys of the tool's name.
pub(crate) const NAME_KEYS: [&str; 4] = ["name", "tool_name", "tool", "recipient_name"];
const ARGUMENT_KEYS: [&str; 4] = ["arguments", "parameters", "args", "input"];

/// The calls that a value spells out, all to tools on offer; none when it is anything else.
pub(crate) fn read(value: &Value, tools: &Tools) -> Option<Vec<Named>> {
    match value {
        Value::Array(items) if !items.is_empty() => {
            let all: Option<Vec<_>> = items.iter().map(|item| read_one(item, tools)).collect();
            all
        }
        Value::Object(map) => match map.get("tool_calls") {
            Some(calls @ Value::Array(_)) if !map.contains_key("name") => read(calls, tools),
            Some(_) | None => read_one(value, tools).map(|call| vec![call]),
        },
        Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            None
        }
    }
}

fn read_one(value: &Value, tools: &Tools) -> Option<Named> {
    if let Some(function @ Value::Object(_)) = value.get("function") {
        return read_one(function, tools);
    }
    let first = |keys: &[&str]| keys.iter().find_map(|key| value.get(*key));
    let name = first(&NAME_KEYS).or_else(|| value.get("function"))?.as_str()?;
    let name = tools.resolve(name)?;
    let arguments = read_object(&first(&ARGUMENT_KEYS)?.to_string()).ok()?;
    Some((name.to_owned(), arguments))
}

/// The one tool that a piece of markup names.
pub(crate) fn tool_in<'t>(head: &str, tools: &'t Tools) -> Option<&'t str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
    let mut found: Vec<&str> =
        head.split(|c| !is_part(c)).filter_map(|word| tools.resolve(word)).collect();
    found.dedup();
    match found.as_slice() {
        [only] => Some(*only),
        _ => None,
    }
}

/// The name in an envelope that has not ended.
pub(crate) fn name_so_far(text: &str) -> Option<String> {
    let after = text.split_once("\"name\"").map(|(_, after)| after.trim_start())?;
    let value = after.strip_prefix(':')?.trim_start();
    match lenient::parse_prefix(value).ok()?.0 {
        Value::String(name) => Some(name),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            None
        }
    }
}

/// What an XML-like call came to.
pub(crate) enum Xml {
    /// A call, and how many bytes it takes.
    Call(Named, usize),
    /// Its end has not come.
    Open,
    /// It is none.
    No,
}

/// Reads `<function=name><parameter=key>value</parameter>…</function>`. Values are verbatim; one
/// line end at either side belongs to the syntax.
pub(crate) fn read_xml(text: &str, tools: &Tools) -> Xml {
    let Some(rest) = text.strip_prefix("<function=") else { return Xml::No };
    let Some((name, mut rest)) = rest.split_once('>') else { return Xml::Open };
    let Some(name) = tools.resolve(name.trim_matches(['"', '\'', ' '])) else { return Xml::No };
    let mut arguments = Map::new();
    loop {
        let inner = rest.trim_start();
        if let Some(after) = inner.strip_prefix("</function>") {
            let length = text.len().saturating_sub(after.len());
            return Xml::Call((name.to_owned(), arguments), length);
        }
        let Some(parameter) = inner.strip_prefix("<parameter=") else {
            let may_grow =
                ["</function>", "<parameter="].iter().any(|mark| mark.starts_with(inner));
            return if may_grow { Xml::Open } else { Xml::No };
        };
        let Some((key, value)) = parameter.split_once('>') else { return Xml::Open };
        let Some((value, after)) = split_value(value) else { return Xml::Open };
        let key = key.trim_matches(['"', '\'', ' ']).to_owned();
        let typed = typed(value, tools.argument_schema(name, &key));
        arguments.insert(key, typed);
        rest = after;
    }
}

/// A value ends at the closing tag that the next parameter or the end of the call follows, so that
/// a value may quote the tag.
fn split_value(text: &str) -> Option<(&str, &str)> {
    let mark = "</parameter>";
    text.match_indices(mark).find_map(|(at, _)| {
        let after = text.get(at.saturating_add(mark.len())..)?;
        let next = after.trim_start();
        let ends = next.starts_with("</function>") || next.starts_with("<parameter=");
        let value = text.get(..at)?;
        let value = value.strip_prefix('\n').unwrap_or(value);
        ends.then(|| (value.strip_suffix('\n').unwrap_or(value), after))
    })
}

/// Text is all that the form can carry; a schema that asks for something else gets it when the text
/// is exactly that.
fn typed(text: &str, schema: Option<&Value>) -> Value {
    let wanted = schema.and_then(|schema| schema.get("type")).and_then(Value::as_str);
    let plain = Value::String(text.to_owned());
    let Some(wanted) = wanted.filter(|wanted| *wanted != "string") else { return plain };
    match lenient::parse(text.trim()) {
        Ok(value) if is_type(&value, wanted) => value,
        Ok(_) | Err(_) => plain,
    }
}

fn is_type(value: &Value, wanted: &str) -> bool {
    match value {
        Value::Null => wanted == "null",
        Value::Bool(_) => wanted == "boolean",
        Value::Number(number) => wanted == "number" || (wanted == "integer" && !number.is_f64()),
        Value::String(_) => wanted == "string",
        Value::Array(_) => wanted == "array",
        Value::Object(_) => wanted == "object",
    }
}

/// Reads `[name(key=value, …), …]`.
pub(crate) fn read_pythonic(text: &str, tools: &Tools) -> Option<Vec<Named>> {
    let mut rest = text.trim().strip_prefix('[')?.strip_suffix(']')?.trim();
    let mut calls = Vec::new();
    while !rest.is_empty() {
        let (name, after) = rest.split_once('(')?;
        let name = tools.resolve(name.trim())?.to_owned();
        let (arguments, after) = keywords(after)?;
        calls.push((name, arguments));
        let after = after.trim_start();
        rest = after.strip_prefix(',').unwrap_or(after).trim_start();
    }
    (!calls.is_empty()).then_some(calls)
}

fn keywords(text: &str) -> Option<(Map<String, Value>, &str)> {
    let mut arguments = Map::new();
    let mut rest = text.trim_start();
    loop {
        if let Some(after) = rest.strip_prefix(')') {
            return Some((arguments, after));
        }
        let (key, after) = rest.split_once('=')?;
        let (value, after) = lenient::parse_prefix(after).ok()?;
        arguments.insert(key.trim().to_owned(), value);
        let after = after.trim_start();
        rest = after.strip_prefix(',').unwrap_or(after).trim_start();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tools() -> Tools {
        let schema = json!({"properties": {"lines": {"type": "integer"}}});
        Tools::new([("show".to_owned(), schema.into()), ("hide".to_owned(), Value::Null.into())])
    }

    fn named(name: &str, arguments: Value) -> Named {
        let Value::Object(map) = arguments else { panic!("not an object") };
        (name.to_owned(), map)
    }

    #[test]
    fn an_envelope_needs_a_tool_on_offer_and_arguments() {
        let calls = |value: Value| read(&value, &tools());
        let show = || Some(vec![named("show", json!({"a": 1}))]);
        assert_eq!(calls(json!({"name": "show", "arguments": {"a": 1}})), show());
        assert_eq!(calls(json!({"function": {"name": "show", "arguments": "{\"a\":1}"}})), show());
        assert_eq!(calls(json!([{"tool": "show", "parameters": {"a": 1}}])), show());
        assert_eq!(calls(json!({"name": "other", "arguments": {}})), None);
        assert_eq!(calls(json!({"name": "show"})), None);
        assert_eq!(calls(json!(["show"])), None);
    }

    #[test]
    fn xml_values_are_verbatim_and_typed_by_the_schema() {
        let text = "<function=show>\n<parameter=file>\na</parameter>b & <c>\n</parameter>\n\
                    <parameter=lines>\n7\n</parameter>\n</function> rest";
        let Xml::Call(call, length) = read_xml(text, &tools()) else { panic!("no call") };
        assert_eq!(call, named("show", json!({"file": "a</parameter>b & <c>", "lines": 7})));
        assert_eq!(text.get(length..), Some(" rest"));
    }

    #[test]
    fn python_calls_are_read_with_their_literals() {
        let text = "[show(a='x, )', b=[1, True]), hide()]";
        let expected =
            [named("show", json!({"a": "x, )", "b": [1, true]})), named("hide", json!({}))];
        assert_eq!(read_pythonic(text, &tools()), Some(expected.to_vec()));
        assert_eq!(read_pythonic("[other()]", &tools()), None);
    }

    #[test]
    fn markup_names_a_tool_only_when_it_is_the_only_one() {
        assert_eq!(tool_in("<x>functions.show:0<|y|>json\n", &tools()), Some("show"));
        assert_eq!(tool_in("show or hide", &tools()), None);
    }
}

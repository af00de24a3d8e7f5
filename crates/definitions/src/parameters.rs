//! The parameters of a tool: JSON Schema, or the short form with one line a field.

use argument_check::{ArgumentCheck, BadSchema};
use serde_json::{Map, Value, json};

use crate::problem::Report;
use crate::schema_words;
use crate::yaml::{Kind, Node, Place};

/// Formats that a validator or a provider knows; any other word is a remark for the model.
const FORMATS: [&str; 27] = [
    "binary",
    "byte",
    "date",
    "date-time",
    "double",
    "duration",
    "email",
    "float",
    "hostname",
    "idn-email",
    "idn-hostname",
    "int32",
    "int64",
    "ipv4",
    "ipv6",
    "iri",
    "iri-reference",
    "json-pointer",
    "password",
    "regex",
    "relative-json-pointer",
    "time",
    "uint32",
    "uri",
    "uri-reference",
    "uri-template",
    "uuid",
];

const TYPE_WORDS: [(&str, &str); 6] = [
    ("str", "string"),
    ("int", "integer"),
    ("float", "number"),
    ("bool", "boolean"),
    ("list", "array"),
    ("dict", "object"),
];

/// Reads parameters in either form into a schema that is known to compile.
pub(crate) fn read(place: &Place<'_>, report: &mut Report) -> Option<Value> {
    let Kind::Map(_) = place.node().kind else {
        report.wrong(
            place,
            "a JSON Schema of type object, or a map of fields",
            "write `city: {type: string, required: true, description: …}` for each parameter",
        );
        return None;
    };
    let is_short = is_short(place.node());
    let clean = if is_short {
        schema_words::check_short(place, report)
    } else {
        schema_words::check(place, report)
    };
    if !clean {
        return None;
    }
    let schema = if is_short { short(place, report)? } else { full(place.node()) };
    match ArgumentCheck::new(&schema) {
        Ok(_) => Some(schema),
        Err(bad) => {
            tell(&bad, place, is_short, report);
            None
        }
    }
}

/// Reads a schema of any type, such as that of a result.
pub(crate) fn read_any(place: &Place<'_>, report: &mut Report) -> Option<Value> {
    if !schema_words::check(place, report) {
        return None;
    }
    let schema = place.node().to_json();
    match ArgumentCheck::of_any(&schema) {
        Ok(_) => Some(schema),
        Err(bad) => {
            tell(&bad, place, false, report);
            None
        }
    }
}

/// A schema says `type: object` or has schema words; the short form has only fields.
fn is_short(node: &Node) -> bool {
    let says_type = node.get("type").is_some_and(|kind| matches!(kind.kind, Kind::Text(_)));
    let has_words = ["properties", "$ref", "$defs", "allOf", "anyOf", "oneOf"]
        .iter()
        .any(|word| node.get(word).is_some_and(|value| value.get("type").is_none()));
    !says_type && !has_words
}

fn full(node: &Node) -> Value {
    let mut schema = node.to_json();
    if let Some(object) = schema.as_object_mut()
        && object.contains_key("properties")
    {
        object.entry("type").or_insert_with(|| json!("object"));
    }
    tidy(&mut schema);
    schema
}

fn short(place: &Place<'_>, report: &mut Report) -> Option<Value> {
    let mut properties = Map::new();
    for entry in place.node().entries() {
        let field = place.child(&entry.name, &entry.node);
        properties.insert(entry.name.clone(), short_field(&field, report)?);
    }
    let mut schema = json!({
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    });
    tidy(&mut schema);
    Some(schema)
}

/// `city: string` or `city: {type: string, …}`.
fn short_field(field: &Place<'_>, report: &mut Report) -> Option<Value> {
    let mut value = match &field.node().kind {
        Kind::Text(word) => json!({ "type": word }),
        Kind::Map(_) => field.node().to_json(),
        Kind::Null => json!({}),
        Kind::Bool(_) | Kind::Number(_) | Kind::List(_) => {
            report.wrong(field, "a type or a map", "write `{type: string, required: true}`");
            return None;
        }
    };
    if let Some(word) = value.get_mut("type") {
        let known = TYPE_WORDS.iter().find(|(short, _)| word.as_str() == Some(*short));
        if let Some((_, long)) = known {
            *word = json!(long);
        }
    }
    Some(value)
}

/// Turns `required: true` inside a field and remarks in `format` into JSON Schema, all the way down.
fn tidy(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else { return };
    remark(object);
    let mut required = Vec::new();
    if let Some(properties) = object.get_mut("properties").and_then(Value::as_object_mut) {
        for (name, property) in properties {
            if takes_required(property) {
                required.push(Value::String(name.clone()));
            }
            tidy(property);
        }
    }
    if !required.is_empty() {
        let list = object.entry("required").or_insert_with(|| json!([]));
        if let Some(list) = list.as_array_mut() {
            required.retain(|name| !list.contains(name));
            list.extend(required);
        }
    }
    if let Some(items) = object.get_mut("items") {
        tidy(items);
    }
}

/// Removes a field's own `required` or `optional` and tells whether it has to be sent.
fn takes_required(property: &mut Value) -> bool {
    let Some(object) = property.as_object_mut() else { return false };
    let mut needed = false;
    if let Some(Value::Bool(required)) = object.get("required") {
        needed = *required;
        object.remove("required");
    }
    if let Some(Value::Bool(optional)) = object.get("optional") {
        needed = !*optional;
        object.remove("optional");
    }
    needed
}

/// `format: YYYY-MM-DD, today if absent` is a remark; it belongs into the description.
fn remark(object: &mut Map<String, Value>) {
    let format = object.get("format").and_then(Value::as_str);
    let Some(remark) = format.filter(|word| !FORMATS.contains(word)).map(str::to_owned) else {
        return;
    };
    object.remove("format");
    let before = object.get("description").and_then(Value::as_str).unwrap_or_default().trim();
    let text = if before.is_empty() {
        format!("Format: {remark}")
    } else {
        format!("{}. Format: {remark}", before.trim_end_matches('.'))
    };
    object.insert("description".to_owned(), Value::String(text));
}

fn tell(bad: &BadSchema, place: &Place<'_>, is_short: bool, report: &mut Report) {
    for problem in &bad.problems {
        let (node, field) = find(place, &problem.at, is_short);
        let at = Place::root(node).child(&field, node);
        report.broken(
            &at,
            "a JSON Schema that can be used",
            format!("a part that {}", problem.rule),
            &*problem.fix,
        );
    }
}

/// The node that a pointer into the schema came from, as near as it can be told.
fn find<'n>(place: &Place<'n>, pointer: &str, is_short: bool) -> (&'n Node, String) {
    let mut node = place.node();
    let mut field = place.field().to_owned();
    for (depth, part) in pointer.split('/').skip(1).enumerate() {
        if is_short && depth == 0 && part == "properties" {
            continue;
        }
        let part = part.replace("~1", "/").replace("~0", "~");
        let next = match &node.kind {
            Kind::List(items) => part.parse::<usize>().ok().and_then(|index| items.get(index)),
            Kind::Map(_) => node.get(&part),
            Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) => None,
        };
        let Some(next) = next else { break };
        node = next;
        field = format!("{field}.{part}");
    }
    (node, field)
}

//! From a schema of a description to one that a model can fill: references resolved, bounded in depth
//! and size, without what means nothing to JSON Schema.

use argument_check::ArgumentCheck;
use serde_json::{Map, Value, json};

use super::operation::{reference, target};

/// Depths that are tried until the schema is small enough.
const DEPTHS: [usize; 4] = [8, 5, 3, 2];
/// Largest parameters, in bytes of JSON.
const LARGEST: usize = 24 * 1024;
/// The most values that one schema may be made of; a document that refers in ever more ways to itself
/// ends here.
const MOST_VALUES: usize = 4000;
/// Longest description of a field, in characters.
const LONGEST_WORDS: usize = 300;

/// Words that are taken as they are.
const PLAIN: [&str; 17] = [
    "type",
    "enum",
    "const",
    "default",
    "format",
    "pattern",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
    "required",
];
/// Words with a schema, or with a list of them.
const NESTED: [&str; 3] = ["items", "additionalProperties", "not"];
const LISTS: [&str; 3] = ["oneOf", "anyOf", "allOf"];

/// Makes parameters of a map of schemas; the error says why that cannot be.
pub(super) fn parameters(
    document: &Value,
    properties: &[(String, Value)],
    required: &[String],
) -> Result<Value, String> {
    for depth in DEPTHS {
        let mut reader = Reader { document, left: MOST_VALUES, patterns: true };
        let schema = reader.object(properties, required, depth);
        if schema.to_string().len() > LARGEST {
            continue;
        }
        if ArgumentCheck::new(&schema).is_ok() {
            return Ok(schema);
        }
        // A pattern in the dialect of another language is what usually does not compile.
        let mut reader = Reader { document, left: MOST_VALUES, patterns: false };
        let schema = reader.object(properties, required, depth);
        return match ArgumentCheck::new(&schema) {
            Ok(_) => Ok(schema),
            Err(bad) => Err(format!("its parameters are no valid JSON Schema: {bad}")),
        };
    }
    Err(format!("its parameters have more than {LARGEST} bytes even when cut"))
}

struct Reader<'d> {
    document: &'d Value,
    left: usize,
    patterns: bool,
}

impl Reader<'_> {
    fn object(
        &mut self,
        properties: &[(String, Value)],
        required: &[String],
        depth: usize,
    ) -> Value {
        let fields: Map<String, Value> = properties
            .iter()
            .map(|(name, schema)| (name.clone(), self.schema(schema, depth, &mut Vec::new())))
            .collect();
        json!({
            "type": "object", "properties": fields, "required": required,
            "additionalProperties": false,
        })
    }

    fn schema(&mut self, value: &Value, depth: usize, above: &mut Vec<String>) -> Value {
        let Some(left) = self.left.checked_sub(1) else { return json!({}) };
        self.left = left;
        if let Some(reference) = reference(value) {
            if above.iter().any(|known| known == reference) {
                return json!({ "description": "The same again, as deep as needed." });
            }
            let Some(found) = target(self.document, reference) else { return json!({}) };
            above.push(reference.to_owned());
            let mut schema = self.schema(found, depth, above);
            above.pop();
            // Words beside a reference say what it means here.
            if let (Some(words), Some(fields)) = (words(value), schema.as_object_mut()) {
                fields.insert("description".to_owned(), Value::from(words));
            }
            return schema;
        }
        let Some(fields) = value.as_object() else {
            return if value.is_boolean() { value.clone() } else { json!({}) };
        };
        if depth == 0 {
            return shallow(fields);
        }
        self.fields(fields, depth, above)
    }

    fn fields(
        &mut self,
        fields: &Map<String, Value>,
        depth: usize,
        above: &mut Vec<String>,
    ) -> Value {
        let mut schema = Map::new();
        let plain = PLAIN.iter().filter(|word| self.patterns || **word != "pattern");
        for word in plain {
            if let Some(value) = fields.get(*word) {
                schema.insert((*word).to_owned(), value.clone());
            }
        }
        let said = words(&Value::Object(fields.clone()));
        schema.extend(said.map(|words| ("description".to_owned(), Value::from(words))));
        self.properties(fields, depth, above, &mut schema);
        for word in NESTED {
            if let Some(value) = fields.get(word) {
                let inner = self.schema(value, depth.saturating_sub(1), above);
                schema.insert(word.to_owned(), inner);
            }
        }
        for word in LISTS {
            let items =
                fields.get(word).and_then(Value::as_array).filter(|items| !items.is_empty());
            let Some(items) = items else { continue };
            let inner: Vec<Value> = items
                .iter()
                .map(|item| self.schema(item, depth.saturating_sub(1), above))
                .collect();
            schema.insert(word.to_owned(), Value::from(inner));
        }
        older(fields, &mut schema);
        merged(schema)
    }

    fn properties(
        &mut self,
        fields: &Map<String, Value>,
        depth: usize,
        above: &mut Vec<String>,
        schema: &mut Map<String, Value>,
    ) {
        let Some(properties) = fields.get("properties").and_then(Value::as_object) else { return };
        let mut made = Map::new();
        for (name, property) in properties {
            // What the server sets by itself is not for whoever asks.
            if property.get("readOnly") == Some(&Value::Bool(true)) {
                if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
                    required.retain(|one| one != name);
                }
                continue;
            }
            let property = self.schema(property, depth.saturating_sub(1), above);
            made.insert(name.clone(), property);
        }
        schema.insert("properties".to_owned(), Value::Object(made));
    }
}

/// The kind of a value, without what is in it.
fn shallow(fields: &Map<String, Value>) -> Value {
    let kept = ["type", "enum", "format"].iter();
    let kept = kept.filter_map(|word| Some(((*word).to_owned(), fields.get(*word)?.clone())));
    let mut schema: Map<String, Value> = kept.collect();
    let said = words(&Value::Object(fields.clone()));
    schema.extend(said.map(|words| ("description".to_owned(), Value::from(words))));
    older(fields, &mut schema);
    Value::Object(schema)
}

fn words(value: &Value) -> Option<String> {
    let text = ["description", "title"].iter().find_map(|word| value.get(*word)?.as_str())?;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut: String = text.chars().take(LONGEST_WORDS).collect();
    (!cut.is_empty()).then_some(cut)
}

/// What version 3.0 says in its own way.
fn older(fields: &Map<String, Value>, schema: &mut Map<String, Value>) {
    if fields.get("nullable") == Some(&Value::Bool(true)) {
        if let Some(kind) = schema.get("type").and_then(Value::as_str) {
            schema.insert("type".to_owned(), json!([kind, "null"]));
        }
        if let Some(values) = schema.get_mut("enum").and_then(Value::as_array_mut)
            && !values.contains(&Value::Null)
        {
            values.push(Value::Null);
        }
    }
    for (bound, exclusive) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")] {
        if let Some(Value::Bool(is_exclusive)) = schema.get(exclusive).cloned() {
            schema.remove(exclusive);
            if is_exclusive && let Some(value) = schema.remove(bound) {
                schema.insert(exclusive.to_owned(), value);
            }
        }
    }
}

/// Objects that all have to fit are one object.
fn merged(mut schema: Map<String, Value>) -> Value {
    let is_object = |part: &Value| {
        let fields = part.as_object();
        fields.is_some_and(|fields| {
            fields.keys().all(|word| {
                ["type", "properties", "required", "description"].contains(&word.as_str())
            }) && fields.get("type").is_none_or(|kind| kind == "object")
                && fields.contains_key("properties")
        })
    };
    let parts = schema.get("allOf").and_then(Value::as_array).cloned().unwrap_or_default();
    if parts.is_empty() || !parts.iter().all(is_object) {
        if let [only] = parts.as_slice()
            && let (Some(fields), true) = (only.as_object(), schema.len() <= 2)
        {
            let mut fields = fields.clone();
            schema.remove("allOf");
            fields.extend(schema);
            return Value::Object(fields);
        }
        return Value::Object(schema);
    }
    schema.remove("allOf");
    let mut properties = Map::new();
    let mut required: Vec<Value> = Vec::new();
    for part in parts.iter().chain([&Value::Object(schema.clone())]) {
        let fields = part.get("properties").and_then(Value::as_object);
        properties.extend(fields.cloned().unwrap_or_default());
        let names = part.get("required").and_then(Value::as_array);
        required.extend(names.into_iter().flatten().cloned());
    }
    required.dedup();
    schema.insert("type".to_owned(), Value::from("object"));
    schema.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        schema.insert("required".to_owned(), Value::from(required));
    }
    Value::Object(schema)
}

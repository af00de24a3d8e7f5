//! The words of a schema, as the file has them: a misspelt one would pass in silence, for a schema
//! may hold words that nobody knows.

use crate::problem::Report;
use crate::yaml::{Kind, Place};

/// Every word that JSON Schema, `OpenAPI` or the short form gives a meaning.
pub(crate) const WORDS: [&str; 66] = [
    "$anchor",
    "$comment",
    "$defs",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$ref",
    "$schema",
    "$vocabulary",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "contains",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "default",
    "definitions",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "deprecated",
    "description",
    "discriminator",
    "else",
    "enum",
    "example",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "externalDocs",
    "format",
    "id",
    "if",
    "items",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "nullable",
    "oneOf",
    "optional",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "propertyNames",
    "readOnly",
    "required",
    "then",
    "title",
    "type",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
    "writeOnly",
];

/// Words that hold one schema, a list of schemas, and schemas by name.
const ONE: [&str; 12] = [
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];
const LIST: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
const NAMED: [&str; 5] =
    ["$defs", "definitions", "dependentSchemas", "patternProperties", "properties"];

/// Deeper schemas are left to the validator.
const DEEPEST: usize = 32;
/// A shorter word is near to many others.
const SHORTEST: usize = 4;

/// What people write for a type, and what they should.
const TYPES: [(&str, &str); 9] = [
    ("any", "leave `type` out: then anything fits"),
    ("date", "write `type: string` with `format: date`"),
    ("datetime", "write `type: string` with `format: date-time`"),
    ("email", "write `type: string` with `format: email`"),
    ("enum", "write `type: string` with `enum: [a, b]`"),
    ("file", "write `type: string`, and say in the description that it is a path"),
    ("text", "write `type: string`"),
    ("uri", "write `type: string` with `format: uri`"),
    ("url", "write `type: string` with `format: uri`"),
];

/// Whether a word means nothing but is so near to one that does that it is a slip of the pen.
pub(crate) fn slip(word: &str) -> Option<&'static str> {
    if is_known(word) || word.starts_with("x-") {
        return None;
    }
    let known = WORDS.iter().copied().filter(|known| known.len() >= SHORTEST);
    argument_check::nearest(word, known)
}

/// Whether a word has a meaning.
pub(crate) fn is_known(word: &str) -> bool {
    WORDS.contains(&word)
}

/// Tells every slip in a schema and answers whether there was none.
pub(crate) fn check(place: &Place<'_>, report: &mut Report) -> bool {
    schema(place, false, 0, report)
}

/// The same for the short form, whose outermost names are those of parameters.
pub(crate) fn check_short(place: &Place<'_>, report: &mut Report) -> bool {
    named(place, true, 0, report)
}

/// `is_field` is true for the schema of one parameter, where `required` is true or false.
fn schema(place: &Place<'_>, is_field: bool, depth: usize, report: &mut Report) -> bool {
    if depth > DEEPEST {
        return true;
    }
    let mut clean = true;
    for entry in place.node().entries() {
        let at = place.child(&entry.name, &entry.node);
        let name = entry.name.as_str();
        let deeper = depth.saturating_add(1);
        clean &= if name.contains(' ') && entry.node.is_null() {
            let mut node = entry.node.clone();
            (node.line, node.column) = entry.name_at;
            let fix = "put the whole text in quotes: inside `{ }` a comma ends it";
            report.at(&node, place.field(), "fields of a schema", format!("`{name}`"), fix);
            false
        } else if let Some(meant) = slip(name) {
            let mut node = entry.node.clone();
            (node.line, node.column) = entry.name_at;
            let found = format!("`{name}`, which means nothing");
            report.at(
                &node,
                at.field(),
                "a word of JSON Schema",
                found,
                format!("write `{meant}`"),
            );
            false
        } else if name == "required" || name == "optional" {
            required(&at, is_field, report)
        } else if name == "type" {
            kind(&at, report)
        } else if ONE.contains(&name) {
            schema(&at, false, deeper, report)
        } else if LIST.contains(&name) {
            list(&at, deeper, report)
        } else if NAMED.contains(&name) {
            named(&at, name == "properties", deeper, report)
        } else {
            true
        };
    }
    clean
}

fn list(place: &Place<'_>, depth: usize, report: &mut Report) -> bool {
    let Kind::List(items) = &place.node().kind else { return true };
    let each = items.iter().enumerate().map(|(index, node)| {
        let at = place.item(index, node);
        schema(&at, false, depth, report)
    });
    each.fold(true, |clean, one| clean & one)
}

fn named(place: &Place<'_>, are_fields: bool, depth: usize, report: &mut Report) -> bool {
    let each = place.node().entries().iter().map(|entry| {
        let at = place.child(&entry.name, &entry.node);
        match entry.node.as_text().filter(|_| are_fields) {
            Some(word) => type_word(&at, word, report),
            None => schema(&at, are_fields, depth.saturating_add(1), report),
        }
    });
    each.fold(true, |clean, one| clean & one)
}

/// YAML 1.2 has `true` and `false` only, so `yes` is a text.
fn required(at: &Place<'_>, is_field: bool, report: &mut Report) -> bool {
    let Some(word) = at.node().as_text() else { return true };
    let meant = match word.to_ascii_lowercase().as_str() {
        "yes" | "on" | "y" | "true" => Some(true),
        "no" | "off" | "n" | "false" => Some(false),
        _ => None,
    };
    let name = at.field().rsplit('.').next().unwrap_or_default();
    match meant {
        Some(value) => report.wrong(
            at,
            "true or false",
            format!("write `{name}: {value}` without quotes; YAML reads `yes` and `no` as text"),
        ),
        None if is_field => report.wrong(at, "true or false", format!("write `{name}: true`")),
        None => report.wrong(at, "a list of names", format!("write `{name}: [{word}]`")),
    }
    false
}

fn kind(at: &Place<'_>, report: &mut Report) -> bool {
    match &at.node().kind {
        Kind::Text(word) => type_word(at, word, report),
        Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::List(_) | Kind::Map(_) => true,
    }
}

/// Words for which there is a better fix than the nearest type; the validator tells the others.
fn type_word(at: &Place<'_>, word: &str, report: &mut Report) -> bool {
    let plain = word.to_ascii_lowercase().replace(['-', '_'], "");
    let Some((_, fix)) = TYPES.iter().find(|(known, _)| *known == plain) else { return true };
    let expected = "one of string, number, integer, boolean, array, object, null";
    report.wrong(at, expected, *fix);
    false
}

/// The words of a schema that mean nothing, with the path to each: allowed, and worth advice.
pub(crate) fn strange(node: &serde_json::Value, at: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    collect(node, at, 0, &mut found);
    found
}

fn collect(node: &serde_json::Value, at: &str, depth: usize, found: &mut Vec<(String, String)>) {
    let Some(object) = node.as_object().filter(|_| depth <= DEEPEST) else { return };
    for (name, value) in object {
        let deeper = depth.saturating_add(1);
        let name = name.as_str();
        if !is_known(name) && !name.starts_with("x-") {
            found.push((at.to_owned(), name.to_owned()));
        } else if ONE.contains(&name) {
            collect(value, at, deeper, found);
        } else if LIST.contains(&name) {
            value.as_array().into_iter().flatten().for_each(|one| collect(one, at, deeper, found));
        } else if NAMED.contains(&name) {
            for (inner, schema) in value.as_object().into_iter().flatten() {
                collect(schema, &format!("{at}.{inner}"), deeper, found);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_told_from_a_word_of_somebody_else() {
        let slips = [
            ("requird", "required"),
            ("descripton", "description"),
            ("typ", "type"),
            ("item", "items"),
            ("propertis", "properties"),
            ("maxlength", "maxLength"),
            ("additional_properties", "additionalProperties"),
        ];
        for (word, meant) in slips {
            assert_eq!(slip(word), Some(meant), "{word}");
        }
        for word in ["x-typ", "note", "hint", "unit", "ui:order", "label", "vendor", "type"] {
            assert_eq!(slip(word), None, "{word}");
        }
    }

    #[test]
    fn the_words_are_sorted() {
        assert!(WORDS.is_sorted());
        assert!([&ONE[..], &LIST, &NAMED].concat().iter().all(|word| is_known(word)));
    }
}

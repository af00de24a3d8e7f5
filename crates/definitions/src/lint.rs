//! Advice on a manifest that is valid: what makes models call a tool wrongly or not at all.

use std::fmt;

use proto::tool::{Approval, Effect};
use serde_json::{Map, Value};

use crate::manifest::{Manifest, ToolDefinition};
use crate::risks;
use crate::run::Run;
use crate::schema_words;
use crate::template::Template;

/// One piece of advice.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Advice {
    /// The file as the user named it.
    pub file: String,
    /// The line of the tool.
    pub line: u32,
    /// The tool.
    pub tool: String,
    /// The part of it, such as `parameters.city`.
    pub field: String,
    /// What is weak about it.
    pub weakness: String,
    /// What to do.
    pub fix: String,
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, tool, field, weakness, fix } = self;
        write!(f, "{file}:{line}: {tool}.{field}: {weakness}. Advice: {fix}")
    }
}

/// Words that say nothing about what a tool does.
const EMPTY_WORDS: [&str; 12] = [
    "a",
    "an",
    "the",
    "this",
    "tool",
    "function",
    "does",
    "do",
    "stuff",
    "things",
    "something",
    "helper",
];

/// A shorter limit is more often a mistaken unit than meant.
const SHORTEST_MS: u64 = 50;
/// A model fills that many fields well.
const MANY_FIELDS: usize = 15;
const DEEP: usize = 4;

/// Advice on every tool, in the order of the file.
pub fn lint(manifest: &Manifest) -> Vec<Advice> {
    let mut advice = Vec::new();
    for tool in &manifest.tools {
        let mut notes = Notes(Vec::new());
        description(tool, &mut notes);
        promises(tool, &mut notes);
        parameters(tool, &mut notes);
        arguments(tool, &mut notes);
        risks::risks(tool, &mut notes);
        advice.extend(notes.0.into_iter().map(|(field, weakness, fix)| Advice {
            file: manifest.file.clone(),
            line: tool.stated.line,
            tool: tool.contract.name.to_string(),
            field,
            weakness,
            fix: fix.to_owned(),
        }));
    }
    advice
}

pub(crate) struct Notes(Vec<(String, String, &'static str)>);

impl Notes {
    pub(crate) fn add(
        &mut self,
        field: impl Into<String>,
        weakness: impl Into<String>,
        fix: &'static str,
    ) {
        self.0.push((field.into(), weakness.into(), fix));
    }
}

fn description(tool: &ToolDefinition, notes: &mut Notes) {
    let text = &tool.contract.description;
    let name = tool.contract.name.as_str().to_lowercase();
    let words = text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
    let telling = words.filter(|word| {
        !word.is_empty() && !EMPTY_WORDS.contains(&word.as_str()) && !name.contains(word.as_str())
    });
    if telling.count() < 3 {
        notes.add(
            "description",
            "is too vague to choose the tool by",
            "say what it does, to what, and what it returns",
        );
    }
    if text.chars().count() > 1024 {
        notes.add(
            "description",
            "is longer than 1024 characters",
            "keep what decides when to call it",
        );
    }
}

fn promises(tool: &ToolDefinition, notes: &mut Notes) {
    let is_command = matches!(tool.run, Run::Command(_));
    if is_command && !tool.stated.timeout {
        let fix = "add `timeout_ms`, twice what it takes on a bad day";
        notes.add("timeout_ms", "is not stated, so an attempt ends after 3 seconds", fix);
    }
    if tool.stated.timeout && tool.contract.timeout_ms < SHORTEST_MS {
        let weakness = format!("is {} ms: hardly anything ends so soon", tool.contract.timeout_ms);
        notes.add("timeout_ms", weakness, "write seconds as `3s` or `timeout_seconds: 3`");
    }
    if !tool.stated.effect && !risks::trusts(tool) {
        let fix = "say `read_only`, `idempotent`, `checkable` or `irreversible`";
        notes.add("effect", "is not stated, so it counts as irreversible", fix);
    }
    let contract = &tool.contract;
    let asks = !matches!(contract.approval, Approval::Never);
    if contract.effect == Effect::Irreversible && tool.stated.effect && !asks {
        let fix = "add `approval: always` or `when_tainted`, unless nobody could mind";
        notes.add("approval", "is never asked for an irreversible tool", fix);
    }
    if contract.effect == Effect::ReadOnly && asks {
        notes.add("approval", "is asked for a tool that changes nothing", "leave it out");
    }
}

fn parameters(tool: &ToolDefinition, notes: &mut Notes) {
    let schema = &tool.contract.parameters;
    object(schema, "parameters", 1, notes);
    if !closes(schema) {
        let fix = "add `additionalProperties: false`, so that a slip of the pen is told";
        notes.add("parameters", "accept fields that nobody knows", fix);
    }
    for (at, word) in schema_words::strange(schema, "parameters") {
        let fix = "leave it out, or begin it with `x-` if it is meant for somebody else";
        notes.add(at, format!("has `{word}`, which means nothing in JSON Schema"), fix);
    }
    for word in ["anyOf", "oneOf", "allOf", "not", "if"] {
        if schema.get(word).is_some() {
            let fix = "describe one plain object; many providers refuse this";
            notes.add("parameters", format!("use `{word}` at the top"), fix);
        }
    }
}

fn closes(schema: &Value) -> bool {
    let has_fields =
        schema.get("properties").and_then(Value::as_object).is_some_and(|p| !p.is_empty());
    !has_fields || schema.get("additionalProperties") == Some(&Value::Bool(false))
}

fn object(schema: &Value, at: &str, depth: usize, notes: &mut Notes) {
    let none = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
    if properties.len() > MANY_FIELDS {
        let fix = "split the tool, or give most of them defaults inside it";
        notes.add(at, format!("have {} fields; models lose track", properties.len()), fix);
    }
    if depth > DEEP {
        notes.add(at, "are nested too deeply for a model to fill", "flatten them");
        return;
    }
    let required = schema.get("required").and_then(Value::as_array);
    for (name, property) in properties {
        let is_required = required.is_some_and(|all| all.iter().any(|one| one == name.as_str()));
        field(property, &format!("{at}.{name}"), is_required, notes);
        object(property, &format!("{at}.{name}"), depth.saturating_add(1), notes);
    }
}

fn field(property: &Value, at: &str, is_required: bool, notes: &mut Notes) {
    let has = |word: &str| property.get(word).is_some();
    if !has("description") && !has("$ref") {
        notes.add(at, "has no description", "say what to put there, with an example");
    }
    let is_typed =
        ["type", "enum", "const", "$ref", "anyOf", "oneOf", "allOf"].iter().any(|word| has(word));
    if !is_typed {
        notes.add(at, "has no type, so anything fits", "add `type: string` or what it is");
    }
    let name = at.rsplit('.').next().unwrap_or_default();
    if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-') {
        let fix = "write it with A to Z, digits, `_` and `-`";
        notes.add(at, "has a name that some providers refuse", fix);
    }
    let kind = property.get("type").and_then(Value::as_str);
    if kind == Some("array") && !has("items") && !has("prefixItems") {
        notes.add(at, "is a list of anything", "add `items: {type: string}` or what they are");
    }
    let is_open = kind == Some("object") && !has("properties") && !has("additionalProperties");
    if is_open {
        notes.add(at, "is an object of anything; models guess its fields", "list its properties");
    }
    let says_default = property.get("description").and_then(Value::as_str).is_some_and(|text| {
        let text = text.to_lowercase();
        text.contains("default") || text.contains("if absent") || text.contains("when absent")
    });
    if !is_required && !has("default") && !says_default && !is_open {
        let fix = "add `default:`, or say in its description what happens without it";
        notes.add(at, "is optional without a default", fix);
    }
    if property.get("enum").and_then(Value::as_array).is_some_and(Vec::is_empty) {
        notes.add(at, "allows no value at all", "list the values");
    }
}

/// How arguments reach the program.
fn arguments(tool: &ToolDefinition, notes: &mut Notes) {
    let Run::Command(run) = &tool.run else { return };
    let required = tool.contract.parameters.get("required").and_then(Value::as_array);
    let mut before = "";
    for text in run.argv.iter().skip(1) {
        for name in Template::parse(text).names() {
            let is_whole = *text == format!("{{{name}}}");
            let is_required = required.is_some_and(|all| all.iter().any(|one| one == name));
            if is_whole && !is_required && before.starts_with('-') && before != "--" {
                let fix = "write both in one element: `--name={name}`";
                notes.add(format!("run.{name}"), "is optional, so its flag may be left alone", fix);
            }
        }
        if text.contains('{') && Template::parse(text).names().next().is_none() {
            let weakness = format!("has `{text}`, which stands for no argument");
            notes.add("run", weakness, "write `{name}` without blanks, if one is meant");
        }
        before = text;
    }
}

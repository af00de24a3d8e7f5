//! What makes a schema unusable, found before the first call.

use jsonschema::error::ValidationErrorKind as Kind;
use jsonschema::{ValidationError, Validator};
use serde_json::Value;

use crate::names::nearest;
use crate::rule;

/// A schema that cannot check arguments.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", describe(.problems))]
pub struct BadSchema {
    /// What is wrong with it; never empty.
    pub problems: Vec<SchemaProblem>,
}

/// One thing that is wrong with a schema.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SchemaProblem {
    /// JSON Pointer to the part of the schema; empty for the whole.
    pub at: String,
    /// What is expected there, to be read after the place: `must be a string`.
    pub rule: String,
    /// What to write instead.
    pub fix: String,
}

fn describe(problems: &[SchemaProblem]) -> String {
    let line = |problem: &SchemaProblem| {
        let at = if problem.at.is_empty() { "the schema" } else { problem.at.as_str() };
        format!("{at} {}. Fix: {}", problem.rule, problem.fix)
    };
    problems.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Arguments are one JSON object, so their schema has to say so.
pub(crate) fn require_object(schema: &Value) -> Result<(), BadSchema> {
    let problem = not_an_object_schema(schema);
    problem.map_or(Ok(()), |problem| Err(BadSchema { problems: vec![problem] }))
}

/// Compiles a schema; formats count, references never leave it.
pub(crate) fn compile(schema: &Value) -> Result<Validator, BadSchema> {
    let problems = against_its_draft(schema);
    if !problems.is_empty() {
        return Err(BadSchema { problems });
    }
    let options = jsonschema::options().offline().should_validate_formats(true);
    options.build(schema).map_err(|error| BadSchema { problems: vec![unusable(&error)] })
}

fn not_an_object_schema(schema: &Value) -> Option<SchemaProblem> {
    let problem = |at: &str, rule: &str| SchemaProblem {
        at: at.to_owned(),
        rule: rule.to_owned(),
        fix: "write `type: object` with `properties`".to_owned(),
    };
    let Some(object) = schema.as_object() else {
        return Some(problem("", "must be a JSON Schema of type object"));
    };
    match object.get("type") {
        Some(Value::String(name)) if name == "object" => None,
        Some(_) => Some(problem("/type", "must be `object`: arguments are one JSON object")),
        None => Some(problem("", "needs `type: object`: arguments are one JSON object")),
    }
}

/// Everything that the schema's own draft forbids.
fn against_its_draft(schema: &Value) -> Vec<SchemaProblem> {
    let Ok(meta) = jsonschema::meta::validator_for(schema) else {
        // An unknown draft is reported when the schema is built.
        return Vec::new();
    };
    let mut problems: Vec<SchemaProblem> =
        meta.iter_errors(schema).map(|error| misplaced(&error)).collect();
    problems.sort();
    problems.dedup();
    problems
}

fn misplaced(error: &ValidationError<'_>) -> SchemaProblem {
    let at = error.instance_path().as_str().to_owned();
    let sent = rule::short(error.instance());
    if at.ends_with("/type") {
        let meant = error.instance().as_str().and_then(|word| nearest(word, TYPES));
        let fix = meant.map_or_else(|| format!("change {sent}"), |word| format!("write `{word}`"));
        return SchemaProblem { at, rule: format!("must be one of {}", TYPES.join(", ")), fix };
    }
    SchemaProblem { at, rule: rule::text(error), fix: format!("change {sent}") }
}

const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "array", "object", "null"];

fn unusable(error: &ValidationError<'_>) -> SchemaProblem {
    let at = error.schema_path().as_str().to_owned();
    if let Kind::Referencing(reason) = error.kind() {
        let rule =
            format!("has a reference that cannot be followed: {}", rule::cut(&reason.to_string()));
        let fix =
            "references stay inside the schema: write `$ref: \"#/$defs/…\"`, nothing is fetched";
        return SchemaProblem { at, rule, fix: fix.to_owned() };
    }
    SchemaProblem { at, rule: rule::text(error), fix: "change it".to_owned() }
}

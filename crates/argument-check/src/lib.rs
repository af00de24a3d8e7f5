//! Checks a call's arguments against a tool's schema and says what to change.
//!
//! A schema is compiled once, by [`ArgumentCheck::new`]; each [`ArgumentCheck::check`] then takes
//! microseconds. Every problem is reported at once and names the field, the rule and the fix, so
//! that a model can repair its call in one step. Nothing is ever fetched: a reference that leads
//! out of the schema is an error when the check is made.

mod correct; // what a caller certainly meant
mod fix; // what the caller should send
mod names; // did you mean
mod rule; // what the schema asks for
mod schema; // what makes a schema unusable

use std::fmt;
use std::sync::Arc;

use jsonschema::error::ValidationErrorKind as Kind;
use jsonschema::{ValidationError, Validator};
use serde_json::{Map, Value};

pub use names::nearest;
pub use schema::{BadSchema, SchemaProblem};

/// Problems that are listed in full; further ones are only counted.
const LISTED: usize = 20;

/// One argument that breaks one rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("`{field}` {rule}. Fix: {fix}")]
pub struct ArgumentProblem {
    /// Where, such as `target.hosts[0]`; `arguments` for the object as a whole.
    pub field: String,
    /// What the schema asks for, to be read after the field: `must be a string`.
    pub rule: String,
    /// What to send instead.
    pub fix: String,
}

/// A compiled schema. Cloning is cheap and shares it.
#[derive(Clone)]
pub struct ArgumentCheck {
    validator: Arc<Validator>,
    schema: Arc<Value>,
}

impl fmt::Debug for ArgumentCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArgumentCheck").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl ArgumentCheck {
    /// Compiles the schema of a tool's arguments; it has to be an object schema.
    pub fn new(parameters: &Value) -> Result<Self, BadSchema> {
        schema::require_object(parameters)?;
        Self::of_any(parameters)
    }

    /// Compiles a schema of any type, such as that of a result or an answer.
    pub fn of_any(schema: &Value) -> Result<Self, BadSchema> {
        let validator = schema::compile(schema)?;
        Ok(Self { validator: Arc::new(validator), schema: Arc::new(schema.clone()) })
    }

    /// The arguments of one call, put right where that loses nothing and can mean nothing else: blanks
    /// around a value, `"5"` for `5`, the case of a word out of a list. With what was changed, in words.
    /// Arguments that stay invalid are left as they are: their problems are told.
    pub fn correct(&self, arguments: Map<String, Value>) -> (Map<String, Value>, Vec<String>) {
        correct::correct(&self.validator, arguments)
    }

    /// Checks the arguments of one call. The problems are sorted by field and never empty.
    pub fn check(&self, arguments: &Map<String, Value>) -> Result<(), Vec<ArgumentProblem>> {
        self.check_value(&Value::Object(arguments.clone()))
    }

    /// The same for a value of any type.
    pub fn check_value(&self, arguments: &Value) -> Result<(), Vec<ArgumentProblem>> {
        if self.validator.is_valid(arguments) {
            return Ok(());
        }
        let errors = self.validator.iter_errors(arguments);
        let mut problems: Vec<ArgumentProblem> =
            errors.flat_map(|error| self.problems(&error)).collect();
        problems.sort();
        problems.dedup();
        if problems.len() > LISTED {
            let more = problems.len().saturating_sub(LISTED);
            problems.truncate(LISTED);
            problems.push(and_more(more));
        }
        Err(problems)
    }

    /// One problem per field: a keyword may name several unexpected ones.
    fn problems(&self, error: &ValidationError<'_>) -> Vec<ArgumentProblem> {
        let at = field(error.instance_path().as_str());
        let unexpected = unexpected(error.kind());
        if !unexpected.is_empty() {
            let known = self.known_beside(error);
            return unexpected.iter().map(|name| stray(&at, name, &known)).collect();
        }
        if let Kind::Required { property } = error.kind() {
            let name = property.as_str().unwrap_or_default();
            return vec![self.missing(&at, name, error)];
        }
        let rule = rule::text(error);
        let fix = fix::text(error);
        vec![ArgumentProblem { field: named(&at), rule, fix }]
    }

    fn missing(&self, at: &str, name: &str, error: &ValidationError<'_>) -> ArgumentProblem {
        let properties = self.beside(error, "properties");
        let fix = fix::missing(name, properties.and_then(|all| all.get(name)));
        ArgumentProblem { field: join(at, name), rule: "is required and missing".to_owned(), fix }
    }

    /// The names that the schema knows where an unexpected one was sent.
    fn known_beside(&self, error: &ValidationError<'_>) -> Vec<&str> {
        let properties = self.beside(error, "properties").and_then(Value::as_object);
        properties.map(|all| all.keys().map(String::as_str).collect()).unwrap_or_default()
    }

    /// Another keyword of the schema object that holds the broken one.
    fn beside(&self, error: &ValidationError<'_>, keyword: &str) -> Option<&Value> {
        let path = error.schema_path().as_str();
        let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        self.schema.pointer(parent)?.get(keyword)
    }
}

/// What is wrong with a text that should be one JSON value of this schema, in one paragraph.
pub fn check_json(check: &ArgumentCheck, text: &[u8]) -> Result<(), String> {
    let value: Value = serde_json::from_slice(text.trim_ascii())
        .map_err(|error| format!("it is not one JSON value ({error})"))?;
    check.check_value(&value).map_err(|problems| describe(&problems))
}

/// All problems in one paragraph, for an observation that a model reads.
pub fn describe(problems: &[ArgumentProblem]) -> String {
    let lines: Vec<String> = problems.iter().map(ArgumentProblem::to_string).collect();
    lines.join("\n")
}

fn and_more(count: usize) -> ArgumentProblem {
    ArgumentProblem {
        field: "arguments".to_owned(),
        rule: format!("break {count} further rules"),
        fix: "repair the ones above first".to_owned(),
    }
}

fn unexpected(kind: &Kind) -> &[String] {
    if let Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } =
        kind
    {
        return unexpected;
    }
    &[]
}

fn stray(at: &str, name: &str, known: &[&str]) -> ArgumentProblem {
    let fix = match nearest(name, known.iter().copied()) {
        Some(meant) => format!("rename it to `{}`", join(at, meant)),
        None if known.is_empty() => "leave it out".to_owned(),
        None => format!("leave it out; the parameters are {}", known.join(", ")),
    };
    ArgumentProblem { field: join(at, name), rule: "is not a parameter".to_owned(), fix }
}

fn join(at: &str, name: &str) -> String {
    if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") }
}

fn named(at: &str) -> String {
    if at.is_empty() { "arguments".to_owned() } else { at.to_owned() }
}

/// `/a/0/b` as people write it: `a[0].b`.
fn field(pointer: &str) -> String {
    let mut text = String::new();
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        if !text.is_empty() && part.bytes().all(|b| b.is_ascii_digit()) {
            text = format!("{text}[{part}]");
        } else {
            text = join(&text, &part);
        }
    }
    text
}

#[cfg(test)]
mod tests;

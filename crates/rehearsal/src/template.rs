//! Texts with `{{path}}` in them, filled from what was heard.
//!
//! | path | what |
//! |---|---|
//! | `user`, `user.1`, `user.name` | the user's newest words, or a group of `user_matches` |
//! | `input.a.0.b` | a value of the JSON in the user's newest words |
//! | `observed.tool`, `observed.tool.a.b` | the newest observation of a tool, or a value of its JSON |
//! | `turn` | which reply this is, from 1 |
//! | `open` | two opening braces |
//!
//! `{{path|text}}` writes the text when the value is not there.

use serde_json::{Map, Value};

use crate::condition::{Condition, turn};
use crate::heard::{self, Heard};
use crate::matcher::text_of;

/// A text with holes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Hole { path: Vec<String>, otherwise: Option<String> },
}

/// A value that may hold templates, for the arguments of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// A text; one that is a single hole takes the value's type.
    Text(Template),
    /// A list.
    List(Vec<Shape>),
    /// An object.
    Map(Vec<(String, Shape)>),
    /// Anything else, as it is.
    Plain(Value),
}

/// A hole that nothing fills.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{{{{{0}}}}}` has no value in this conversation: write `{{{{{0}|otherwise}}}}` or add a condition"
)]
pub struct Unfilled(pub String);

/// What templates are filled from.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The conversation.
    pub heard: &'a Heard,
    /// The rule's condition: its scope and its groups.
    pub condition: &'a Condition,
}

impl Template {
    /// Reads a template; the error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let (inner, tail) =
                after.split_once("}}").ok_or_else(|| "a `{{` without its `}}`".to_owned())?;
            parts.push(Part::Text(before.to_owned()));
            parts.push(hole(inner)?);
            rest = tail;
        }
        parts.push(Part::Text(rest.to_owned()));
        parts.retain(|part| *part != Part::Text(String::new()));
        Ok(Self { parts })
    }

    /// The groups of the user's words that have to be there.
    pub(crate) fn user_groups(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Hole { path, otherwise: None } => match path.as_slice() {
                [root, group, ..] if root == "user" => Some(group.as_str()),
                _ => None,
            },
            Part::Hole { .. } | Part::Text(_) => None,
        })
    }

    /// The text with every hole filled.
    pub fn fill(&self, source: Source<'_>) -> Result<String, Unfilled> {
        let texts = self.parts.iter().map(|part| match part {
            Part::Text(text) => Ok(text.clone()),
            Part::Hole { path, otherwise } => {
                let value = value(path, source).map(|value| text_of(&value));
                value.or_else(|| otherwise.clone()).ok_or_else(|| Unfilled(path.join(".")))
            }
        });
        texts.collect()
    }

    /// The filled value: with its own type when the template is one hole and nothing else.
    fn fill_value(&self, source: Source<'_>) -> Result<Value, Unfilled> {
        if let [Part::Hole { path, .. }] = self.parts.as_slice()
            && let Some(value) = value(path, source)
        {
            return Ok(value);
        }
        self.fill(source).map(Value::String)
    }
}

const ROOTS: [&str; 5] = ["user", "input", "observed", "turn", "open"];

fn hole(inner: &str) -> Result<Part, String> {
    let (path, otherwise) = match inner.split_once('|') {
        Some((path, otherwise)) => (path, Some(otherwise.trim().to_owned())),
        None => (inner, None),
    };
    let path: Vec<String> = path.trim().split('.').map(str::to_owned).collect();
    let root = path.first().map(String::as_str).unwrap_or_default();
    if !ROOTS.contains(&root) {
        return Err(format!("`{{{{{inner}}}}}`, which begins with none of {}", ROOTS.join(", ")));
    }
    if path.iter().any(String::is_empty) || (root == "observed" && path.len() < 2) {
        return Err(format!("`{{{{{inner}}}}}`, which is not a whole path"));
    }
    Ok(Part::Hole { path, otherwise })
}

fn value(path: &[String], source: Source<'_>) -> Option<Value> {
    let (root, rest) = path.split_first()?;
    let user = source.heard.user();
    match root.as_str() {
        "open" => Some(Value::from("{{")),
        "turn" => Some(Value::from(turn(source.condition.scope(source.heard)))),
        "input" => inside(&heard::json_in(user)?, rest),
        "observed" => {
            let (tool, rest) = rest.split_first()?;
            let events = source.condition.scope(source.heard);
            let observed = heard::newest(events, Some(tool))?;
            match rest {
                [] => Some(Value::String(observed.text.clone())),
                rest => inside(observed.json.as_ref()?, rest),
            }
        }
        _ => match rest {
            [] => Some(Value::String(user.to_owned())),
            [group, ..] => {
                let groups = source.condition.user_matches.as_ref()?.captures(user)?;
                let number = group.parse::<usize>().ok();
                let found = number.map_or_else(|| groups.name(group), |number| groups.get(number));
                found.map(|found| Value::String(found.as_str().to_owned()))
            }
        },
    }
}

fn inside(value: &Value, path: &[String]) -> Option<Value> {
    if path.is_empty() {
        Some(value.clone())
    } else {
        heard::at_path(value, &path.join(".")).cloned()
    }
}

impl Shape {
    /// The value with every hole filled.
    pub fn fill(&self, source: Source<'_>) -> Result<Value, Unfilled> {
        match self {
            Self::Text(template) => template.fill_value(source),
            Self::List(items) => items.iter().map(|item| item.fill(source)).collect(),
            Self::Map(fields) => {
                let filled =
                    fields.iter().map(|(name, shape)| Ok((name.clone(), shape.fill(source)?)));
                filled.collect::<Result<Map<_, _>, _>>().map(Value::Object)
            }
            Self::Plain(value) => Ok(value.clone()),
        }
    }
}

//! Texts with `{name}` in them: argument vectors and resource names.
//!
//! A template fills one element and is never split, so that a value cannot become two arguments.
//! `{{` and `}}` stand for the braces themselves.

use serde_json::{Map, Value};

/// A text with holes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Hole(String),
}

/// A text that is not a template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadTemplate(String);

impl Template {
    /// Reads a template.
    pub fn parse(text: &str) -> Result<Self, BadTemplate> {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text.chars();
        while let Some(letter) = rest.next() {
            let doubled = rest.as_str().starts_with(letter);
            match letter {
                '{' | '}' if doubled => {
                    plain.push(letter);
                    rest.next();
                }
                '{' => {
                    let (name, after) = hole(rest.as_str())?;
                    parts.push(Part::Text(std::mem::take(&mut plain)));
                    parts.push(Part::Hole(name.to_owned()));
                    rest = after.chars();
                }
                '}' => {
                    return Err(BadTemplate(
                        "a `}` without its `{`; write `}}` for a brace".to_owned(),
                    ));
                }
                _ => plain.push(letter),
            }
        }
        parts.push(Part::Text(plain));
        Ok(Self { parts })
    }

    /// The names of its holes.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Hole(name) => Some(name.as_str()),
            Part::Text(_) => None,
        })
    }

    /// The text with every hole filled; `None` when an argument is absent or null.
    pub fn fill(&self, arguments: &Map<String, Value>) -> Option<String> {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Text(plain) => text.push_str(plain),
                Part::Hole(name) => match arguments.get(name)? {
                    Value::Null => return None,
                    Value::String(value) => text.push_str(value),
                    other @ (Value::Bool(_)
                    | Value::Number(_)
                    | Value::Array(_)
                    | Value::Object(_)) => {
                        text.push_str(&other.to_string());
                    }
                },
            }
        }
        Some(text)
    }
}

fn hole(rest: &str) -> Result<(&str, &str), BadTemplate> {
    let Some((name, after)) = rest.split_once('}') else {
        return Err(BadTemplate("a `{` without its `}`; write `{{` for a brace".to_owned()));
    };
    if name.is_empty() || name.contains(['{', ' ']) {
        return Err(BadTemplate(format!("`{{{name}}}`, which names no parameter")));
    }
    Ok((name, after))
}

/// The argument vector of a call. An element whose argument is absent is left out whole.
///
/// The templates were checked when the manifest was read; one that cannot be read is passed as is.
pub fn argv(templates: &[String], arguments: &Map<String, Value>) -> Vec<String> {
    let filled = templates.iter().filter_map(|text| match Template::parse(text) {
        Ok(template) => template.fill(arguments),
        Err(_) => Some(text.clone()),
    });
    filled.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn arguments() -> Map<String, Value> {
        let value =
            json!({"city": "Sao Paulo; rm -rf /", "days": 3, "units": null, "tags": ["a", "b"]});
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn a_value_fills_one_element_whatever_it_holds() {
        let templates =
            ["bin", "--city={city}", "{days}", "{tags}", "{{literal}}"].map(str::to_owned);
        assert_eq!(
            argv(&templates, &arguments()),
            ["bin", "--city=Sao Paulo; rm -rf /", "3", r#"["a","b"]"#, "{literal}"]
        );
    }

    #[test]
    fn an_element_without_its_argument_is_left_out() {
        let templates = ["bin", "--units={units}", "{absent}", "last"].map(str::to_owned);
        assert_eq!(argv(&templates, &arguments()), ["bin", "last"]);
    }

    #[test]
    fn a_value_that_looks_like_a_template_is_not_filled_again() {
        let arguments = json!({"a": "{b}", "b": "secret"}).as_object().cloned().unwrap();
        assert_eq!(argv(&["{a}".to_owned()], &arguments), ["{b}"]);
    }

    #[test]
    fn braces_that_do_not_pair_are_refused() {
        for (text, problem) in [
            ("{city", "a `{` without its `}`; write `{{` for a brace"),
            ("city}", "a `}` without its `{`; write `}}` for a brace"),
            ("{}", "`{}`, which names no parameter"),
            ("{a b}", "`{a b}`, which names no parameter"),
        ] {
            assert_eq!(Template::parse(text).unwrap_err().to_string(), problem);
        }
    }
}

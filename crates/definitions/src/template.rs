//! Texts with `{name}` in them: argument vectors, parts of requests, resource names.
//!
//! `{name}` stands for the argument `name`. Braces around anything but a name are ordinary text. A
//! template fills one element and is never split, so that a value cannot become two arguments.

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

impl Template {
    /// Reads a template; every text is one.
    pub fn parse(text: &str) -> Self {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            parts.push(Part::Text(before.to_owned()));
            match after.split_once('}') {
                Some((name, tail)) if is_name(name) => {
                    parts.push(Part::Hole(name.to_owned()));
                    rest = tail;
                }
                Some(_) | None => {
                    parts.push(Part::Text("{".to_owned()));
                    rest = after;
                }
            }
        }
        parts.push(Part::Text(rest.to_owned()));
        Self { parts }
    }

    /// The names of its holes.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Hole(name) => Some(name.as_str()),
            Part::Text(_) => None,
        })
    }

    /// The text with every hole filled: text as it is, anything else as JSON. `None` when an
    /// argument is absent or null.
    pub fn fill(&self, arguments: &Map<String, Value>) -> Option<String> {
        self.fill_with(arguments, str::to_owned)
    }

    /// The same with every value written by `write`; the template's own text stays.
    pub fn fill_with(
        &self,
        arguments: &Map<String, Value>,
        write: impl Fn(&str) -> String,
    ) -> Option<String> {
        let filled = self.parts.iter().map(|part| match part {
            Part::Text(plain) => Some(plain.clone()),
            Part::Hole(name) => shown(arguments.get(name)?).map(|value| write(&value)),
        });
        filled.collect()
    }

    /// The name of its hole, when there is nothing else.
    pub fn hole(&self) -> Option<&str> {
        let mut holes = None;
        for part in &self.parts {
            match part {
                Part::Text(text) if text.is_empty() => {}
                Part::Hole(name) if holes.is_none() => holes = Some(name.as_str()),
                Part::Text(_) | Part::Hole(_) => return None,
            }
        }
        holes
    }

    /// The template as text, its own text written by `write`.
    pub(crate) fn with_text(&self, write: impl Fn(&str) -> String) -> String {
        let parts = self.parts.iter().map(|part| match part {
            Part::Text(text) => write(text),
            Part::Hole(name) => format!("{{{name}}}"),
        });
        parts.collect()
    }
}

/// A value as text: text as it is, anything else as JSON, nothing for null.
pub fn shown(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            Some(other.to_string())
        }
    }
}

fn is_name(text: &str) -> bool {
    let starts_well = !text.starts_with(|c: char| c.is_numeric() || c == '-');
    let ok = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    !text.is_empty() && starts_well && text.chars().all(ok)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fill(text: &str) -> Option<String> {
        let value = json!({"city": "Rome {days}", "days": 3, "units": null, "tags": ["a", "b"]});
        Template::parse(text).fill(value.as_object()?)
    }

    #[test]
    fn a_value_fills_its_hole_and_is_not_read_again() {
        assert_eq!(fill("--city={city}").as_deref(), Some("--city=Rome {days}"));
        assert_eq!(fill("{days}/{tags}").as_deref(), Some(r#"3/["a","b"]"#));
    }

    #[test]
    fn a_name_may_have_the_letters_of_any_language() {
        let value = json!({"größe": 3, "名前": "a"});
        let filled = Template::parse("--size={größe} {名前}").fill(value.as_object().unwrap());
        assert_eq!(filled.as_deref(), Some("--size=3 a"));
    }

    #[test]
    fn a_template_may_be_one_hole_and_nothing_else() {
        assert_eq!(Template::parse("{days}").hole(), Some("days"));
        for text in ["{days} ", "{days}{city}", "days", ""] {
            assert_eq!(Template::parse(text).hole(), None);
        }
    }

    #[test]
    fn a_hole_without_its_argument_empties_the_whole() {
        assert_eq!(fill("--units={units}"), None);
        assert_eq!(fill("x{absent}"), None);
    }

    #[test]
    fn braces_around_anything_but_a_name_are_text() {
        for text in ["{", "}", "{}", "{a b}", "{\"a\": 1}", "${1}", "{-a}", "plain"] {
            assert_eq!(fill(text).as_deref(), Some(text));
        }
    }
}

//! What a tool's file wants to see of a result that is too long.

use serde_json::{Map, Value};

/// What is kept of a long result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Form {
    /// JSON pointers of a JSON result that are kept, in which `*` stands for each; all when empty.
    pub keep: Vec<String>,
    /// Lines of a text, or items of a list, that are kept.
    pub rows: Option<usize>,
    /// Which end of what is still too long.
    pub part: Part,
}

/// Which end of a long text is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Part {
    /// Both ends.
    #[default]
    Both,
    /// The beginning.
    Head,
    /// The end.
    Tail,
}

/// A choice out of a text.
pub(super) struct Chosen {
    /// What was chosen, after a line that says what it is.
    pub(super) text: String,
    /// The lines that were not.
    pub(super) left_out: String,
}

impl Form {
    /// What the form chooses; nothing when it leaves the text as it is.
    pub(super) fn chosen(&self, text: &str) -> Option<Chosen> {
        if self.keep.is_empty() && self.rows.is_none() {
            return None;
        }
        match serde_json::from_str::<Value>(text) {
            Ok(value) => self.of_json(value),
            Err(_) => self.rows.and_then(|rows| of_lines(text, rows)),
        }
    }

    fn of_json(&self, whole: Value) -> Option<Chosen> {
        let mut notes = Vec::new();
        let mut value = self.only_kept(whole, &mut notes);
        if let Some(rows) = self.rows {
            value = fewer(value, rows, &mut notes);
        }
        let chosen = || format!("{}\n{value}", notes.join("\n"));
        (!notes.is_empty()).then(|| Chosen { text: chosen(), left_out: String::new() })
    }

    /// The parts at the paths; all of it where there is nothing, for that is better than nothing.
    fn only_kept(&self, whole: Value, notes: &mut Vec<String>) -> Value {
        if self.keep.is_empty() {
            return whole;
        }
        let paths: Vec<Vec<&str>> = self.keep.iter().map(|path| segments(path)).collect();
        match kept(&whole, &paths) {
            None => notes.push(format!("[Nothing of it lies at {}.]", self.keep.join(", "))),
            Some(kept) if kept != whole => {
                notes.push(format!("[Kept of the result: {}.]", self.keep.join(", ")));
                return kept;
            }
            Some(_) => {}
        }
        whole
    }
}

/// The steps of a JSON pointer (RFC 6901).
fn segments(path: &str) -> Vec<&str> {
    path.split('/').skip(1).collect()
}

fn leads_to(step: &str, name: &str) -> bool {
    step == "*" || step.replace("~1", "/").replace("~0", "~") == name
}

/// The parts of a value at the paths; it is no deeper than its parser allows.
fn kept(value: &Value, paths: &[Vec<&str>]) -> Option<Value> {
    if paths.iter().any(Vec::is_empty) {
        return Some(value.clone());
    }
    let below = |name: &str, child: &Value| {
        let further = paths.iter().filter_map(|path| path.split_first());
        let further = further.filter(|(step, _)| leads_to(step, name));
        let further: Vec<Vec<&str>> = further.map(|(_, rest)| rest.to_vec()).collect();
        kept(child, &further)
    };
    match value {
        Value::Object(fields) => {
            let found = fields
                .iter()
                .filter_map(|(name, child)| below(name, child).map(|child| (name.clone(), child)));
            let found: Map<String, Value> = found.collect();
            (!found.is_empty()).then_some(Value::Object(found))
        }
        Value::Array(items) => {
            let numbered = items.iter().enumerate();
            let found = numbered.filter_map(|(index, item)| below(&index.to_string(), item));
            let found: Vec<Value> = found.collect();
            (!found.is_empty()).then_some(Value::Array(found))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// The value with fewer items in its list, or in the lists that are its fields.
fn fewer(value: Value, rows: usize, notes: &mut Vec<String>) -> Value {
    let mut of_list = |name: &str, items: Vec<Value>| {
        let all = items.len();
        if all <= rows {
            return Value::Array(items);
        }
        notes.push(format!("[{name}: {rows} of {all} items shown]"));
        let shown = spread(all, rows);
        let items = items.into_iter().enumerate();
        Value::Array(items.filter(|(at, _)| shown.contains(at)).map(|(_, item)| item).collect())
    };
    match value {
        Value::Array(items) => of_list("list", items),
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(name, child)| match child {
                Value::Array(items) => {
                    let list = of_list(&name, items);
                    (name, list)
                }
                other @ (Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::String(_)
                | Value::Object(_)) => (name, other),
            });
            Value::Object(fields.collect())
        }
        plain @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => plain,
    }
}

fn of_lines(text: &str, rows: usize) -> Option<Chosen> {
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() <= rows {
        return None;
    }
    let shown = spread(lines.len(), rows);
    let note = format!("[{rows} of {} lines shown]", lines.len());
    let (mut kept, mut left_out) = (vec![note.as_str()], Vec::new());
    for (at, line) in lines.iter().enumerate() {
        if shown.contains(&at) { kept.push(line) } else { left_out.push(*line) }
    }
    Some(Chosen { text: kept.join("\n"), left_out: left_out.join("\n") })
}

/// So many places out of all: the first, the last, and some in between at equal distances.
fn spread(all: usize, rows: usize) -> std::collections::BTreeSet<usize> {
    let (last, steps) = (all.saturating_sub(1), rows.saturating_sub(1).max(1));
    (0..rows).map(|row| row.saturating_mul(last) / steps).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(keep: &[&str], rows: Option<usize>) -> Form {
        let keep = keep.iter().map(|path| (*path).to_owned()).collect();
        Form { keep, rows, part: Part::Both }
    }

    fn text(form: &Form, text: &str) -> Option<String> {
        form.chosen(text).map(|chosen| chosen.text)
    }

    #[test]
    fn paths_of_a_json_result_are_kept() {
        let result = r#"{"status":"ok","items":[{"id":1,"x":"long"},{"id":2}],"a/b":3}"#;
        let chosen = text(&form(&["/items/*/id", "/a~1b"], None), result).unwrap();
        assert_eq!(
            chosen,
            "[Kept of the result: /items/*/id, /a~1b.]\n{\"a/b\":3,\"items\":[{\"id\":1},{\"id\":2}]}"
        );
        let chosen = text(&form(&["/items/1"], None), result).unwrap();
        assert!(chosen.ends_with("{\"items\":[{\"id\":2}]}"), "{chosen}");
        let nothing = text(&form(&["/nowhere"], None), result).unwrap();
        assert!(nothing.starts_with("[Nothing of it lies at /nowhere.]\n{"), "{nothing}");
        assert_eq!(text(&form(&["/status", "/items", "/a~1b"], None), result), None);
    }

    #[test]
    fn lists_and_lines_are_thinned_out_evenly() {
        let three = form(&[], Some(3));
        assert_eq!(text(&three, "[1,2,3,4,5]").unwrap(), "[list: 3 of 5 items shown]\n[1,3,5]");
        let inside = text(&three, r#"{"rows":[1,2,3,4,5,6,7],"n":7}"#).unwrap();
        assert_eq!(inside, "[rows: 3 of 7 items shown]\n{\"n\":7,\"rows\":[1,4,7]}");
        let lines = three.chosen("head\na\nerror\nb\nlast").unwrap();
        assert_eq!(lines.text, "[3 of 5 lines shown]\nhead\nerror\nlast");
        assert_eq!(lines.left_out, "a\nb");
        assert_eq!(text(&form(&[], Some(1)), "a\nb").unwrap(), "[1 of 2 lines shown]\na");
        assert_eq!(text(&three, "a\nb\nc"), None);
        assert_eq!(text(&Form::default(), "[1,2,3,4,5]"), None);
    }
}

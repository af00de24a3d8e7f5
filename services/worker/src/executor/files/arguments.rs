//! Reads a builtin's arguments. They were checked against its schema before; this is what stays
//! true if a schema is written too loosely.

use serde_json::{Map, Value};

/// The arguments of a call. Null is the same as absent.
pub(super) struct Arguments<'call>(pub(super) &'call Map<String, Value>);

impl Arguments<'_> {
    pub(super) fn text(&self, name: &str) -> Result<String, String> {
        self.optional_text(name)?
            .ok_or_else(|| format!("argument `{name}` is missing: give a text"))
    }

    pub(super) fn optional_text(&self, name: &str) -> Result<Option<String>, String> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(format!("argument `{name}` is {other}: give a text")),
        }
    }

    /// A number of at least 1; one that is larger than `most` counts as `most`.
    pub(super) fn count(&self, name: &str, default: usize, most: usize) -> Result<usize, String> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(default.min(most)),
            Some(value) => match value.as_u64() {
                Some(number @ 1..) => Ok(usize::try_from(number).map_or(most, |n| n.min(most))),
                Some(_) | None => {
                    Err(format!("argument `{name}` is {value}: give a whole number from 1"))
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn wrong_arguments_name_field_and_rule() {
        let map = json!({"path": 3, "lines": 0, "max": "x", "none": null});
        let arguments = Arguments(map.as_object().unwrap());
        let wrong = [
            (arguments.text("path").err(), "argument `path` is 3: give a text"),
            (arguments.text("none").err(), "argument `none` is missing: give a text"),
            (
                arguments.count("lines", 1, 9).err(),
                "argument `lines` is 0: give a whole number from 1",
            ),
            (
                arguments.count("max", 1, 9).err(),
                "argument `max` is \"x\": give a whole number from 1",
            ),
        ];
        for (error, expected) in wrong {
            assert_eq!(error.as_deref(), Some(expected));
        }
    }

    #[test]
    fn a_count_stays_within_its_limits() {
        let map = json!({"large": u64::MAX, "some": 5});
        let arguments = Arguments(map.as_object().unwrap());
        let counts = ["large", "some", "absent"].map(|name| arguments.count(name, 3, 9));
        assert_eq!(counts, [Ok(9), Ok(5), Ok(3)]);
    }
}

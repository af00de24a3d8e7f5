//! The fields of a map, taken one by one; what nobody asked for is a problem.

use std::collections::BTreeSet;

use crate::problem::Report;
use crate::yaml::{Entry, Kind, Place};

/// The fields of one map.
#[derive(Debug)]
pub struct Fields<'n> {
    place: Place<'n>,
    entries: &'n [Entry],
    asked: BTreeSet<&'static str>,
}

impl<'n> Fields<'n> {
    /// Opens a map; anything else is a problem.
    pub fn of(place: &Place<'n>, report: &mut Report) -> Option<Self> {
        let Kind::Map(entries) = &place.node().kind else {
            report.wrong(place, "a map of fields", "write `name: value` lines here");
            return None;
        };
        Some(Self { place: place.clone(), entries, asked: BTreeSet::new() })
    }

    /// Where the map lies.
    pub fn place(&self) -> &Place<'n> {
        &self.place
    }

    /// A field, unless it is absent or empty.
    pub fn get(&mut self, name: &'static str) -> Option<Place<'n>> {
        self.asked.insert(name);
        let entry = self.entries.iter().find(|entry| entry.name == name)?;
        (!entry.node.is_null()).then(|| self.place.child(name, &entry.node))
    }

    /// A field that has to be there.
    pub fn required(
        &mut self,
        name: &'static str,
        expected: &str,
        report: &mut Report,
    ) -> Option<Place<'n>> {
        let found = self.get(name);
        if found.is_none() {
            report.missing(&self.place, name, expected, format!("add `{name}: …`"));
        }
        found
    }

    /// A field that goes by several names; two of them at once contradict each other.
    pub fn either<T: Copy>(
        &mut self,
        names: &[(&'static str, T)],
        report: &mut Report,
    ) -> Option<(T, Place<'n>)> {
        let found: Vec<(T, Place<'n>)> =
            names.iter().filter_map(|(name, tag)| Some((*tag, self.get(name)?))).collect();
        let mut found = found.into_iter();
        let first = found.next()?;
        for (_, other) in found {
            let expected = format!("only one of the two, and `{}` is there", first.1.field());
            report.wrong(&other, expected, "leave this one out");
        }
        Some(first)
    }

    /// Ends the reading: fields that nobody asked for are problems.
    pub fn close(self, report: &mut Report) {
        for entry in self.entries.iter().filter(|entry| !self.asked.contains(entry.name.as_str())) {
            let known: Vec<&str> = self.asked.iter().copied().collect();
            let (expected, fix) = match meant(&entry.name, &known) {
                Some(meant) => (
                    "a known field".to_owned(),
                    format!("did you mean `{meant}`? Else leave it out"),
                ),
                None => (format!("one of {}", known.join(", ")), "leave it out".to_owned()),
            };
            let place = self.place.child(&entry.name, &entry.node);
            let mut node = entry.node.clone();
            (node.line, node.column) = entry.name_at;
            report.at(&node, place.field(), expected, "an unknown field", fix);
        }
    }
}

/// Fewer letters begin too many names.
const BEGINNING: usize = 3;

/// The known field that a name is nearest to, or the only one that it begins or that begins it.
fn meant<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let near = argument_check::nearest(name, known.iter().copied());
    near.or_else(|| {
        let begins = |known: &&&str| {
            name.chars().count() >= BEGINNING
                && (known.starts_with(name) || name.starts_with(**known))
        };
        let mut fitting = known.iter().filter(begins);
        match (fitting.next(), fitting.next()) {
            (Some(only), None) => Some(only),
            (Some(_) | None, _) => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_meant_by_its_beginning_too() {
        let known = ["description", "timeout_ms", "retry", "run", "result_schema", "result_tokens"];
        assert_eq!(meant("desc", &known), Some("description"));
        assert_eq!(meant("retry_after", &known), Some("retry"));
        assert_eq!(meant("discription", &known), Some("description"));
        assert_eq!(meant("result", &known), None);
        assert_eq!(meant("de", &known), None);
    }
}

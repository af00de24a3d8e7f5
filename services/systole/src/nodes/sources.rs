//! Where settings come from: a file, then the environment, then flags. A later source wins.

use std::collections::BTreeMap;
use std::path::Path;

use definitions::fields::Fields;
use definitions::problem::{Problem, Report};
use definitions::yaml::{self, Kind, Node, Place};

use super::catalogue::{SETTINGS, flag};
use crate::arguments::Given;
use crate::failure::Failure;
use crate::settings::Environment;

/// What was found, with what is wrong with the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    sources: Sources,
    problems: Vec<Problem>,
}

impl Findings {
    /// Whether any source says something about it.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.sources.get(name).is_some()
    }

    /// Makes settings of it, or one failure that tells all problems.
    pub(crate) fn read<T>(
        &self,
        read: impl Fn(&Sources, &[Problem]) -> Result<T, Vec<String>>,
    ) -> Result<T, Failure> {
        read(&self.sources, &self.problems).map_err(Failure::settings)
    }
}

/// Looks into all three sources; a file that was named has to be there.
pub(crate) fn find(
    config: Option<&Path>,
    environment: &Environment,
    given: &[Given],
) -> Result<Findings, Failure> {
    let text = match config {
        Some(path) => Some(std::fs::read_to_string(path).map_err(|error| {
            Failure::settings(vec![format!("{}: cannot be read: {error}", path.display())])
        })?),
        None => None,
    };
    let name = config.map(|path| path.display().to_string()).unwrap_or_default();
    let file = text.as_deref().map(|text| (name.as_str(), text));
    let (sources, problems) = Sources::read(file, environment, given);
    Ok(Findings { sources, problems })
}

/// A value and where it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// The text; items of a list are separated by commas.
    pub(crate) value: String,
    /// The place, for people: a flag, a variable, a line of a file.
    pub(crate) place: String,
}

/// What the three sources say.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources {
    found: BTreeMap<&'static str, Found>,
}

impl Sources {
    /// Reads all of them. A file is its name and its text.
    pub(crate) fn read(
        file: Option<(&str, &str)>,
        environment: &Environment,
        given: &[Given],
    ) -> (Self, Vec<Problem>) {
        let (mut found, problems) = match file {
            Some((name, text)) => from_file(name, text),
            None => (BTreeMap::new(), Vec::new()),
        };
        for setting in SETTINGS {
            let set = environment.text(setting.variable).filter(|value| !value.is_empty());
            if let Some(value) = set {
                let place = setting.variable.to_owned();
                found.insert(setting.name, Found { value, place });
            }
        }
        for (name, value) in given {
            if let Some(value) = value {
                found.insert(*name, Found { value: value.clone(), place: flag(name) });
            }
        }
        (Self { found }, problems)
    }

    /// What was found for a setting.
    pub(crate) fn get(&self, name: &str) -> Option<&Found> {
        self.found.get(name)
    }
}

fn from_file(name: &str, text: &str) -> (BTreeMap<&'static str, Found>, Vec<Problem>) {
    let root = match yaml::read(name, text) {
        Ok(root) => root,
        Err(problems) => return (BTreeMap::new(), problems),
    };
    if root.is_null() {
        return (BTreeMap::new(), Vec::new());
    }
    let mut report = Report::new(name);
    let mut found = BTreeMap::new();
    if let Some(mut fields) = Fields::of(&Place::root(&root), &mut report) {
        for setting in SETTINGS {
            let Some(place) = fields.get(setting.name) else { continue };
            if let Some(value) = text_of(&place, &mut report) {
                let place = format!("{name}:{}", place.node().line);
                found.insert(setting.name, Found { value, place });
            }
        }
        fields.close(&mut report);
    }
    (found, report.finish::<()>(None).err().unwrap_or_default())
}

/// A scalar, or a list of them.
fn text_of(place: &Place<'_>, report: &mut Report) -> Option<String> {
    if let Kind::List(items) = &place.node().kind {
        let texts: Option<Vec<String>> = items.iter().map(scalar).collect();
        if let Some(texts) = texts {
            return Some(texts.join(","));
        }
    }
    let text = scalar(place.node());
    if text.is_none() {
        report.wrong(place, "a value or a list of values", "write `name: value`");
    }
    text
}

fn scalar(node: &Node) -> Option<String> {
    match &node.kind {
        Kind::Text(text) => Some(text.clone()),
        Kind::Number(number) => Some(number.to_string()),
        Kind::Bool(value) => Some(value.to_string()),
        Kind::Null | Kind::List(_) | Kind::Map(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A setting's value and its place.
    fn value(sources: &Sources, name: &str) -> String {
        sources
            .get(name)
            .map_or_else(String::new, |found| format!("{} {}", found.value, found.place))
    }

    #[test]
    fn a_flag_wins_over_a_variable_and_a_variable_over_the_file() {
        let text = "nats: [nats://a:1, nats://b:2]\nslots: 3\nwait_s: 4\n";
        let environment =
            Environment::default().with("SYSTOLE_SLOTS", "5").with("SYSTOLE_WAIT_S", "6");
        let given = [("wait_s", Some("7".to_owned())), ("redis", None)];
        let (sources, problems) = Sources::read(Some(("s.yaml", text)), &environment, &given);
        assert_eq!(problems, []);
        assert_eq!(value(&sources, "nats"), "nats://a:1,nats://b:2 s.yaml:1");
        assert_eq!(value(&sources, "slots"), "5 SYSTOLE_SLOTS");
        assert_eq!(value(&sources, "wait_s"), "7 --wait-s");
        assert_eq!(value(&sources, "redis"), "");
    }

    #[test]
    fn an_unknown_name_in_the_file_is_told_with_the_one_that_was_meant() {
        let text = "natz: nats://a:1\nslots: {a: 1}\n";
        let (_, problems) = Sources::read(Some(("s.yaml", text)), &Environment::default(), &[]);
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].contains("s.yaml:1:1: natz") && lines[0].contains("`nats`"), "{lines:?}");
        assert!(lines[1].contains("slots"), "{lines:?}");
    }
}

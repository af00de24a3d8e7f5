//! What the surroundings say.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, IsTerminal};

use crate::arguments::ColourChoice;

/// The environment of this process, as it was at the start.
#[derive(Clone, Debug, Default)]
pub(crate) struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// Of this process.
    #[expect(clippy::disallowed_methods, reason = "the one place where the environment is read")]
    pub(crate) fn of_process() -> Self {
        Self(std::env::vars_os().collect())
    }

    /// The value of a variable that is set to valid text.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.0.get(&OsString::from(name))?.to_str().map(str::to_owned)
    }

    /// Whether a variable is set and not empty.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.get(&OsString::from(name)).is_some_and(|value| !value.is_empty())
    }

    /// Whether a variable is there, even if it is empty.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.0.contains_key(&OsString::from(name))
    }

    /// The same with one more variable.
    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.0.insert(OsString::from(name), value.into());
        self
    }

    /// All of it.
    pub(crate) fn all(&self) -> &BTreeMap<OsString, OsString> {
        &self.0
    }

    /// Whether the terminal can move its cursor.
    pub(crate) fn has_smart_terminal(&self) -> bool {
        self.text("TERM").is_none_or(|term| term != "dumb")
    }

    /// Whether colours are wanted on standard output.
    pub(crate) fn wants_colours(&self, choice: ColourChoice) -> bool {
        self.colours(choice, io::stdout().is_terminal())
    }

    fn colours(&self, choice: ColourChoice, on_terminal: bool) -> bool {
        match choice {
            ColourChoice::Always => true,
            ColourChoice::Never => false,
            ColourChoice::Auto => on_terminal && !self.has("NO_COLOR") && self.has_smart_terminal(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_need_a_terminal_that_nobody_silenced() {
        let plain = Environment::default();
        assert!(plain.colours(ColourChoice::Auto, true));
        assert!(!plain.colours(ColourChoice::Auto, false));
        assert!(plain.colours(ColourChoice::Always, false));
        assert!(!plain.colours(ColourChoice::Never, true));
        assert!(!plain.clone().with("NO_COLOR", "1").colours(ColourChoice::Auto, true));
        assert!(plain.clone().with("NO_COLOR", "").colours(ColourChoice::Auto, true));
        assert!(!plain.with("TERM", "dumb").colours(ColourChoice::Auto, true));
    }
}

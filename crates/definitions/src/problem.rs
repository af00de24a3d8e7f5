//! What is wrong with a file, where, and what to write instead.

use std::fmt;

use crate::yaml::{Node, Place};

/// One thing that is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The file as the user named it.
    pub file: String,
    /// From 1; 0 when the whole file is meant.
    pub line: u32,
    /// From 1; 0 when the whole file is meant.
    pub column: u32,
    /// Path of the field, such as `tools[0].timeout_ms`; empty for the whole file.
    pub field: String,
    /// What the rule asks for, to be read after "expected".
    pub expected: String,
    /// What is there, to be read after "found".
    pub found: String,
    /// What to write instead.
    pub fix: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}:{}", self.line, self.column)?;
        }
        if !self.field.is_empty() {
            write!(f, ": {}", self.field)?;
        }
        write!(f, ": expected {}; found {}. Fix: {}", self.expected, self.found, self.fix)
    }
}

impl std::error::Error for Problem {}

/// Collects the problems of one file, so that all of them are told at once.
#[derive(Debug)]
pub struct Report {
    file: String,
    problems: Vec<Problem>,
}

impl Report {
    /// An empty report about `file`.
    pub fn new(file: impl Into<String>) -> Self {
        Self { file: file.into(), problems: Vec::new() }
    }

    /// The value at `place` is not what it should be.
    pub fn wrong(
        &mut self,
        place: &Place<'_>,
        expected: impl Into<String>,
        fix: impl Into<String>,
    ) {
        let found = place.node().shown();
        self.broken(place, expected, found, fix);
    }

    /// Something about `place` breaks a rule; `found` says what.
    pub fn broken(
        &mut self,
        place: &Place<'_>,
        expected: impl Into<String>,
        found: impl Into<String>,
        fix: impl Into<String>,
    ) {
        self.at(place.node(), place.field(), expected, found, fix);
    }

    /// The same for a field named apart from its node.
    pub(crate) fn at(
        &mut self,
        node: &Node,
        field: &str,
        expected: impl Into<String>,
        found: impl Into<String>,
        fix: impl Into<String>,
    ) {
        self.problems.push(Problem {
            file: self.file.clone(),
            line: node.line,
            column: node.column,
            field: field.to_owned(),
            expected: expected.into(),
            found: found.into(),
            fix: fix.into(),
        });
    }

    /// A field that has to be there is not.
    pub fn missing(
        &mut self,
        parent: &Place<'_>,
        name: &str,
        expected: impl Into<String>,
        fix: impl Into<String>,
    ) {
        let place = parent.child(name, parent.node());
        self.broken(&place, expected, "nothing", fix);
    }

    /// Whether nothing is wrong so far.
    pub fn is_clean(&self) -> bool {
        self.problems.is_empty()
    }

    /// The value, if nothing was wrong; else every problem, in the order of the file.
    pub fn finish<T>(mut self, value: Option<T>) -> Result<T, Vec<Problem>> {
        match value {
            Some(value) if self.problems.is_empty() => Ok(value),
            Some(_) | None => {
                self.problems.sort();
                self.problems.dedup();
                Err(self.problems)
            }
        }
    }
}

//! Rules that no other tool knows. Each is a pure function from texts to problems, and each
//! problem says how to repair it.

pub mod compose;
pub mod edges;
pub mod generated;
pub mod kill_points;
pub mod names;
pub mod pages;
pub mod purity;
pub mod recorded;
pub mod sizes;
pub mod source;
pub mod stories;
pub mod words;

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::house::House;
use crate::{complain, say};

/// Something to repair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where: a path, with a line if there is one.
    pub place: String,
    /// What is wrong.
    pub wrong: String,
    /// What to do about it.
    pub fix: String,
}

impl Problem {
    /// A problem of a whole file.
    pub fn in_file(path: &str, wrong: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { place: path.to_owned(), wrong: wrong.into(), fix: fix.into() }
    }

    /// A problem at a line.
    pub fn at(path: &str, line: usize, wrong: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::in_file(&format!("{path}:{line}"), wrong, fix)
    }
}

/// A file of the project, its path relative to the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextFile {
    /// Path relative to the root.
    pub path: String,
    /// Content.
    pub text: String,
}

/// Fails if anything is untidy, after naming everything that is.
pub fn check(house: &House) -> Result<()> {
    let problems = problems(house)?;
    for Problem { place, wrong, fix } in &problems {
        complain(&format!("{place}: {wrong}\n    fix: {fix}"));
    }
    if !problems.is_empty() {
        bail!("tidy: {} problems", problems.len());
    }
    say("tidy: nothing to repair");
    Ok(())
}

/// Rewrites generated files, then checks.
pub fn write(house: &House) -> Result<()> {
    for file in generated::write(house)? {
        say(&format!("tidy: wrote {file}"));
    }
    check(house)
}

/// Everything that is untidy.
pub fn problems(house: &House) -> Result<Vec<Problem>> {
    let files = read(house)?;
    let mut problems = edges::check(&house.members, &files);
    problems.extend(names::check(&house.members, &files));
    for file in &files {
        problems.extend(words::check(file));
        if is_rust(&file.path) {
            problems.extend(check_source(file));
        }
    }
    problems.extend(generated::check(&files)?);
    problems.extend(pages::check(&files));
    problems.extend(compose::check(&files));
    problems.extend(stories::check(&files));
    problems.extend(kill_points::check(&files));
    problems.extend(recorded::check(&files)?);
    Ok(problems)
}

fn check_source(file: &TextFile) -> Vec<Problem> {
    let source = match source::Source::parse(&file.text) {
        Ok(source) => source,
        Err(error) => {
            return vec![Problem::in_file(&file.path, format!("not Rust: {error}"), "repair it")];
        }
    };
    let mut problems = sizes::check(file, &source);
    problems.extend(purity::check(file, &source));
    problems
}

fn is_rust(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "rs")
}

/// Every file that is UTF-8; the rest has no words to judge.
fn read(house: &House) -> Result<Vec<TextFile>> {
    let mut files = Vec::new();
    for path in house.files()? {
        let bytes = fs::read(house.root.join(&path)).with_context(|| path.clone())?;
        if let Ok(text) = String::from_utf8(bytes) {
            files.push(TextFile { path, text });
        }
    }
    Ok(files)
}

#[cfg(test)]
pub(crate) mod testing {
    use super::{Problem, TextFile};

    pub(crate) fn file(path: &str, text: &str) -> TextFile {
        TextFile { path: path.to_owned(), text: text.to_owned() }
    }

    pub(crate) fn wrongs(problems: &[Problem]) -> Vec<String> {
        problems.iter().map(|Problem { place, wrong, .. }| format!("{place}: {wrong}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_is_tidy() {
        let problems = problems(&House::find().unwrap()).unwrap();
        assert_eq!(problems, [], "see `cargo xtask tidy`");
    }

    #[test]
    fn a_file_that_does_not_parse_is_a_problem() {
        let broken = testing::file("a.rs", "fn {");
        assert_eq!(check_source(&broken).len(), 1);
    }
}

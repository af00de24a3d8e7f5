//! How long a function and a file may be.

use super::source::{Function, Source};
use super::{Problem, TextFile};

const FUNCTION: usize = 60;
const FILE: usize = 500;
const MAIN: usize = 80;

/// Checks a file; tests and fixtures may be as long as they have to.
pub fn check(file: &TextFile, source: &Source) -> Vec<Problem> {
    if is_test_path(&file.path) {
        return Vec::new();
    }
    let mut problems: Vec<Problem> =
        source.functions.iter().filter_map(|function| check_function(file, function)).collect();
    problems.extend(check_file(file, source));
    problems
}

/// True for files that only tests see.
pub fn is_test_path(path: &str) -> bool {
    let mut parts = path.split('/');
    parts.any(|part| ["tests", "tests.rs", "fixtures", "system-tests"].contains(&part))
}

fn check_function(file: &TextFile, function: &Function) -> Option<Problem> {
    let Function { name, open, close, is_excused } = function;
    let inside = file.text.lines().skip(*open).take(close.saturating_sub(open + 1));
    let length = code_lines(inside);
    (length > FUNCTION && !is_excused).then(|| {
        let wrong = format!("`{name}` has {length} lines of code, {FUNCTION} are allowed");
        let fix = "split it, or add `#[expect(clippy::too_many_lines, reason = \"…\")]`";
        Problem::at(&file.path, *open, wrong, fix)
    })
}

/// Counts as clippy does: blank lines and comments are free.
fn code_lines<'text>(lines: impl Iterator<Item = &'text str>) -> usize {
    let mut in_comment = false;
    let mut count = 0;
    for line in lines.map(str::trim) {
        let starts_comment = line.starts_with("/*");
        if in_comment || starts_comment {
            in_comment = !line.ends_with("*/");
        } else if !line.is_empty() && !line.starts_with("//") {
            count += 1;
        }
    }
    count
}

fn check_file(file: &TextFile, source: &Source) -> Option<Problem> {
    let is_main = file.path.ends_with("/main.rs");
    let (limit, fix) = if is_main {
        (MAIN, "a main file only assembles: move the rest into a module that a test can reach")
    } else {
        (FILE, "split it along its ideas, one file per idea")
    };
    let length = (1..=file.text.lines().count()).filter(|line| !source.is_test(*line)).count();
    (length > limit).then(|| {
        let wrong = format!("has {length} lines outside tests, {limit} are allowed");
        Problem::in_file(&file.path, wrong, fix)
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{file, wrongs};
    use super::*;

    fn problems(path: &str, text: &str) -> Vec<String> {
        wrongs(&check(&file(path, text), &Source::parse(text).unwrap()))
    }

    fn function(lines: usize) -> String {
        format!("fn a() {{\n{}}}\n", "    b();\n".repeat(lines))
    }

    #[test]
    fn a_function_above_the_limit_is_named() {
        let expected = ["a.rs:1: `a` has 61 lines of code, 60 are allowed"];
        assert_eq!(problems("a.rs", &function(61)), expected);
        assert_eq!(problems("a.rs", &function(60)), Vec::<String>::new());
    }

    #[test]
    fn comments_and_blank_lines_are_free() {
        let text =
            function(60).replacen("    b();\n", "    b();\n\n    // c\n    /* d\n    e */\n", 1);
        assert_eq!(problems("a.rs", &text), Vec::<String>::new());
    }

    #[test]
    fn an_excused_function_and_a_test_may_be_long() {
        let excuse = "#[expect(clippy::too_many_lines, reason = \"a table\")]\n";
        let test = "#[test]\n";
        for mark in [excuse, test] {
            assert_eq!(problems("a.rs", &format!("{mark}{}", function(61))), Vec::<String>::new());
        }
        assert_eq!(problems("crates/a/tests/it.rs", &function(61)), Vec::<String>::new());
    }

    #[test]
    fn a_file_above_the_limit_is_named() {
        let expected = ["a.rs: has 501 lines outside tests, 500 are allowed"];
        assert_eq!(problems("a.rs", &"use b;\n".repeat(501)), expected);
    }

    #[test]
    fn the_test_module_of_a_file_is_free() {
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "use b;\n".repeat(500));
        assert_eq!(problems("a.rs", &tests), Vec::<String>::new());
    }

    #[test]
    fn a_main_file_stays_short() {
        let expected = ["a/src/main.rs: has 81 lines outside tests, 80 are allowed"];
        assert_eq!(problems("a/src/main.rs", &"use b;\n".repeat(81)), expected);
    }
}

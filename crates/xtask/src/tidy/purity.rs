//! Pure crates decide and never act: no async, no clock, no chance, no I/O.

use super::source::{Source, Token};
use super::{Problem, TextFile, edges, sizes};

/// Token sequences that act.
const ACTS: [&[&str]; 7] = [
    &["async"],
    &[".", "await"],
    &["SystemTime"],
    &["Instant", ":", ":", "now"],
    &["rand", ":", ":"],
    &["fastrand", ":", ":"],
    &["getrandom", ":", ":"],
];

/// Modules of the standard library that act.
const MODULES: [&str; 5] = ["env", "fs", "net", "process", "thread"];

/// Checks a file if it belongs to a pure crate.
pub fn check(file: &TextFile, source: &Source) -> Vec<Problem> {
    let owner = file.path.strip_prefix("crates/").and_then(|path| path.split('/').next());
    if !owner.is_some_and(edges::is_pure) || sizes::is_test_path(&file.path) {
        return Vec::new();
    }
    let places = (0..source.tokens.len()).filter_map(|at| source.tokens.get(at..));
    let acts = places.filter_map(|tokens| {
        let line = tokens.first()?.line;
        let act = act(tokens).or_else(|| module(tokens))?;
        (!source.is_test(line)).then(|| problem(file, line, &act))
    });
    acts.collect()
}

fn problem(file: &TextFile, line: usize, act: &str) -> Problem {
    let fix =
        "take what it yields as an argument, or return an effect for the service to carry out";
    Problem::at(&file.path, line, format!("`{act}` in a pure crate"), fix)
}

fn act(tokens: &[Token]) -> Option<String> {
    ACTS.iter().find(|act| starts_with(tokens, act)).map(|act| act.concat())
}

fn starts_with(tokens: &[Token], words: &[&str]) -> bool {
    tokens.len() >= words.len()
        && tokens.iter().zip(words).all(|(token, word)| token.text == **word)
}

/// `std::fs` and `use std::{fs, …}`.
fn module(tokens: &[Token]) -> Option<String> {
    if !starts_with(tokens, &["std", ":", ":"]) {
        return None;
    }
    let rest = tokens.get(3..)?;
    let named = if starts_with(rest, &["{"]) { heads(rest) } else { rest.iter().take(1).collect() };
    let found = named.iter().find(|token| MODULES.contains(&token.text.as_str()))?;
    Some(format!("std::{}", found.text))
}

/// The first tokens of each path in a braced `use` list.
fn heads(group: &[Token]) -> Vec<&Token> {
    let mut depth = 0_usize;
    let mut heads = Vec::new();
    let mut is_head = false;
    for token in group {
        match token.text.as_str() {
            "{" => depth += 1,
            "}" => depth = depth.saturating_sub(1),
            _ if is_head => heads.push(token),
            _ => {}
        }
        if depth == 0 {
            break;
        }
        is_head = depth == 1 && ["{", ","].contains(&token.text.as_str());
    }
    heads
}

#[cfg(test)]
mod tests {
    use super::super::testing::{file, wrongs};
    use super::*;

    fn problems(path: &str, text: &str) -> Vec<String> {
        wrongs(&check(&file(path, text), &Source::parse(text).unwrap()))
    }

    const PURE: &str = "crates/tool-core/src/lib.rs";

    #[test]
    fn whatever_acts_is_named() {
        let bad = [
            ("async fn a() {}", "async"),
            ("fn a() { b.await; }", ".await"),
            ("fn a() { std::time::SystemTime::now(); }", "SystemTime"),
            ("fn a() { Instant::now(); }", "Instant::now"),
            ("fn a() { rand::rng(); }", "rand::"),
            ("fn a() { fastrand::u8(..); }", "fastrand::"),
            ("fn a() { std::fs::read(b); }", "std::fs"),
            ("use std::{collections::{BTreeMap, BTreeSet}, net::IpAddr};", "std::net"),
            ("use std::env;", "std::env"),
        ];
        for (text, act) in bad {
            let expected = format!("{PURE}:1: `{act}` in a pure crate");
            assert_eq!(problems(PURE, text), [expected], "{text}");
        }
    }

    #[test]
    fn other_crates_and_tests_may_act() {
        let acts = "async fn a() {}\n";
        assert_eq!(problems("services/planner/src/lib.rs", acts), Vec::<String>::new());
        assert_eq!(problems("crates/tool-core/tests/it.rs", acts), Vec::<String>::new());
        let test = "#[cfg(test)]\nmod tests {\n    use std::fs;\n}\n";
        assert_eq!(problems(PURE, test), Vec::<String>::new());
    }

    #[test]
    fn words_in_comments_and_other_modules_pass() {
        let text = "//! Nothing async, no std::fs.\nuse std::{fmt, time::Duration};\n";
        assert_eq!(problems(PURE, text), Vec::<String>::new());
    }
}

//! A hunt for mutants in a workspace of one tiny simulation, built for real.

#![cfg(test)]

use std::fs;
use std::path::Path;

use tempfile::TempDir;
use xtask::house::House;
use xtask::mutants;

const MANIFEST: &str = r#"
[workspace]
[package]
name = "simulation"
version = "0.1.0"
edition = "2024"
[[bin]]
name = "simulation"
path = "crates/simulation/main.rs"
"#;

/// Finds one fault only: a sum that is off.
const MAIN: &str = r#"
fn main() {
    let sum = 1 + 1;
    let _unseen = 5;
    if sum != 2 {
        println!("seed 7: sum_is_two violated");
        std::process::exit(3);
    }
}
"#;

fn mutant(name: &str, find: &str, healthy: &str, broken: &str) -> serde_json::Value {
    let asks = format!("std::env::var_os(\"SYSTOLE_MUTANT\").is_some_and(|m| m == \"{name}\")");
    serde_json::json!({
        "name": name,
        "file": "crates/simulation/main.rs",
        "find": find,
        "replace": find.replace(healthy, &format!("if {asks} {{ {broken} }} else {{ {healthy} }}")),
        "note": "a test",
    })
}

/// What the hunt complains about.
fn hunt(mutants: &serde_json::Value) -> Option<String> {
    let folder = TempDir::new().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("Cargo.toml", MANIFEST);
    write("crates/simulation/main.rs", MAIN);
    write("crates/simulation/mutants.json", &mutants.to_string());
    mutants::hunt(&house(folder.path())).err().map(|error| error.to_string())
}

fn house(root: &Path) -> House {
    House { root: root.to_path_buf(), target: root.join("target"), members: Vec::new(), ci: true }
}

#[test]
fn a_mutant_that_breaks_an_invariant_is_found() {
    let off_by_one = mutant("off_by_one", "let sum = 1 + 1;", "1 + 1", "1 + 2");
    assert_eq!(hunt(&serde_json::json!([off_by_one])), None);
}

#[test]
fn a_mutant_that_nobody_notices_fails_the_hunt() {
    let off_by_one = mutant("off_by_one", "let sum = 1 + 1;", "1 + 1", "1 + 2");
    let unseen = mutant("unseen", "let _unseen = 5;", "5", "6");
    let error = "not found within 1000 seeds: unseen (a test)".to_owned();
    assert_eq!(hunt(&serde_json::json!([off_by_one, unseen])), Some(error));
}

#[test]
fn a_mutant_whose_text_is_gone_fails_before_anything_is_built() {
    let lost = mutant("lost", "let sum = 9;", "9", "8");
    let error = "mutant lost: its text occurs 0 times in crates/simulation/main.rs, not once: \
                 \"let sum = 9;\"";
    assert_eq!(hunt(&serde_json::json!([lost])), Some(error.to_owned()));
}

#[test]
fn an_empty_list_is_no_hunt() {
    let error = "crates/simulation/mutants.json is empty".to_owned();
    assert_eq!(hunt(&serde_json::json!([])), Some(error));
}

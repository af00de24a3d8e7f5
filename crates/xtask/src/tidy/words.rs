//! Words that no file of the project holds.

use super::{Problem, TextFile, is_rust, names::has_word};

/// Spelled in halves, so that this file passes its own rule.
const MARKS: [&str; 4] =
    [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X"), concat!("HA", "CK")];

const IGNORE: &str = concat!("#[", "ignore");

const HOSTS: [&str; 9] = [
    concat!("static.crates", ".io"),
    concat!("index.crates", ".io"),
    concat!("//crates", ".io"),
    concat!("pypi", ".org"),
    concat!("pythonhosted", ".org"),
    concat!("registry.npmjs", ".org"),
    concat!("npmjs", ".com"),
    concat!("deb.debian", ".org"),
    concat!("proxy.golang", ".org"),
];

/// Files that other programs write or that are quoted as they are.
const QUOTED: [&str; 2] = ["Cargo.lock", "LICENSE"];

/// Checks every line of a file.
pub fn check(file: &TextFile) -> Vec<Problem> {
    if QUOTED.contains(&file.path.as_str()) {
        return Vec::new();
    }
    let lines = file.text.lines().enumerate();
    lines.flat_map(|(index, line)| check_line(file, index + 1, line)).collect()
}

fn check_line(file: &TextFile, number: usize, line: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    if let Some(mark) = MARKS.iter().find(|mark| has_word(line, mark)) {
        let fix = "do it, or file an issue and say here what holds today";
        problems.push(Problem::at(&file.path, number, format!("has the mark {mark}"), fix));
    }
    if let Some(host) = HOSTS.iter().find(|host| line.contains(*host)) {
        let fix = "name the package and its ordinary client, not the registry's address";
        problems.push(Problem::at(&file.path, number, format!("names the host {host}"), fix));
    }
    if is_rust(&file.path) && line.contains(IGNORE) {
        let fix = "assert today's behaviour with a note, or delete the test";
        problems.push(Problem::at(&file.path, number, "ignores a test", fix));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::super::testing::{file, wrongs};
    use super::*;

    fn line(text: &str) -> Vec<String> {
        wrongs(&check(&file("a.rs", text)))
    }

    #[test]
    fn open_marks_are_named_with_their_line() {
        for mark in MARKS {
            let text = format!("fn a() {{}}\n// {mark}: later\n");
            assert_eq!(line(&text), [format!("a.rs:2: has the mark {mark}")]);
        }
        assert_eq!(line("// a hackathon, XXXL\n"), Vec::<String>::new());
    }

    #[test]
    fn addresses_of_registries_are_named() {
        for host in HOSTS {
            let found = line(&format!("see https://{}/x\n", host.trim_start_matches('/')));
            assert_eq!(found, [format!("a.rs:1: names the host {host}")]);
        }
        assert_eq!(line("// sources come from crates.io only\n"), Vec::<String>::new());
    }

    #[test]
    fn an_ignored_test_is_a_problem_with_or_without_a_reason() {
        for rest in ["]", " = \"slow\"]"] {
            assert_eq!(line(&format!("{IGNORE}{rest}\n")), ["a.rs:1: ignores a test"]);
        }
    }

    #[test]
    fn quoted_files_are_left_alone() {
        assert_eq!(check(&file("LICENSE", MARKS[0])), []);
    }
}

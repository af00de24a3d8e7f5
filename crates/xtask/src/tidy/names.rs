//! Adapters are named in one place: everything else sees ports.

use super::{Problem, TextFile, edges, is_rust};
use crate::house::Member;

const WIRING: &str = "services/systole/src/wiring.rs";
const WIRING_PARTS: &str = "services/systole/src/wiring/";

/// Finds adapters named outside the wiring, their own folders and whole-program tests.
pub fn check(members: &[Member], files: &[TextFile]) -> Vec<Problem> {
    let adapters: Vec<&Member> =
        members.iter().filter(|member| edges::is_adapter(&member.name)).collect();
    let sources = files.iter().filter(|file| is_rust(&file.path) && !may_name_any(&file.path));
    sources.flat_map(|file| adapters.iter().flat_map(|adapter| named(adapter, file))).collect()
}

fn may_name_any(path: &str) -> bool {
    path == WIRING
        || path.starts_with(WIRING_PARTS)
        || path.starts_with("system-tests/")
        || path.starts_with("crates/xtask/")
}

fn named(adapter: &Member, file: &TextFile) -> Vec<Problem> {
    let folder = adapter.manifest.trim_end_matches("Cargo.toml");
    if file.path.starts_with(folder) {
        return Vec::new();
    }
    let name = adapter.name.replace('-', "_");
    let lines = file.text.lines().enumerate().filter(|(_, line)| has_word(line, &name));
    let fix = format!("build it in {WIRING} and pass it on as a port");
    lines
        .map(|(index, _)| Problem::at(&file.path, index + 1, format!("names {name}"), &*fix))
        .collect()
}

/// True if `line` has `word` with no letter, digit or underscore around it.
pub fn has_word(line: &str, word: &str) -> bool {
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    line.match_indices(word).any(|(start, _)| {
        let before = line.get(..start).and_then(|text| text.chars().next_back());
        let after = line.get(start + word.len()..).and_then(|text| text.chars().next());
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{file, wrongs};
    use super::*;

    fn problems_in(path: &str, text: &str) -> Vec<String> {
        let adapter = Member {
            name: "bus-sqlite".to_owned(),
            manifest: "crates/bus-sqlite/Cargo.toml".to_owned(),
            dependencies: Vec::new(),
        };
        wrongs(&check(&[adapter], &[file(path, text)]))
    }

    #[test]
    fn an_adapter_named_outside_the_wiring_is_a_problem() {
        let text = "mod a;\nuse bus_sqlite::Journal;\n";
        for path in ["services/planner/src/lib.rs", "services/systole/src/run.rs"] {
            assert_eq!(problems_in(path, text), [format!("{path}:2: names bus_sqlite")]);
        }
    }

    #[test]
    fn the_wiring_the_adapter_and_system_tests_may_name_it() {
        let text = "use bus_sqlite::Journal;\n";
        for path in [WIRING, "crates/bus-sqlite/tests/conformance.rs", "system-tests/tests/kill.rs"]
        {
            assert_eq!(problems_in(path, text), Vec::<String>::new());
        }
    }

    #[test]
    fn a_longer_word_is_another_word() {
        assert!(!has_word("let my_bus_sqlite_path = 1;", "bus_sqlite"));
        assert!(has_word("bus_sqlite::open()", "bus_sqlite"));
    }
}

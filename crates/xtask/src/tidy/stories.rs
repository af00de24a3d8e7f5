//! Each failure story names what shows that it does not happen here, and all of that exists.

use std::collections::{BTreeMap, BTreeSet};

use super::source::Source;
use super::{Problem, TextFile, is_rust, sizes};

const PAGE: &str = "docs/stories.md";
const STORIES: std::ops::RangeInclusive<u32> = 1..=26;
/// What is told by no test, because there is nothing yet to which it could happen.
const NOT_YET: [&str; 1] = ["P19"];

/// Checks the page, once there is one.
pub fn check(files: &[TextFile]) -> Vec<Problem> {
    let Some(page) = files.iter().find(|file| file.path == PAGE) else { return Vec::new() };
    let known = Known::find(files, &page.text);
    let rows: BTreeMap<&str, (usize, &str)> =
        page.text.lines().enumerate().filter_map(row).collect();
    let mut problems = Vec::new();
    for story in STORIES.map(|number| format!("P{number}")) {
        let Some((line, row)) = rows.get(story.as_str()) else {
            let wrong = format!("story {story} is missing");
            problems.push(Problem::in_file(PAGE, wrong, "add its row"));
            continue;
        };
        let shown: Vec<&str> = row.split('`').skip(1).step_by(2).collect();
        if shown.is_empty() && !NOT_YET.contains(&story.as_str()) {
            let fix = "name a test, a fault, a mutant or a cell; write the test if there is none";
            problems.push(Problem::at(PAGE, *line, format!("nothing shows story {story}"), fix));
        }
        let absent = shown.iter().filter(|name| !known.has(name));
        problems.extend(absent.map(|name| {
            let fix = "correct the name, or name what shows the story today";
            Problem::at(PAGE, *line, format!("story {story}: there is no {name}"), fix)
        }));
    }
    problems
}

/// The line of a story, with its number.
fn row((index, line): (usize, &str)) -> Option<(&str, (usize, &str))> {
    let rest = line.strip_prefix("| P")?;
    let story = line.get(2..)?.split(' ').next()?;
    rest.starts_with(|c: char| c.is_ascii_digit()).then_some((story, (index + 1, line)))
}

/// Everything that a row may name.
#[derive(Debug, Default)]
struct Known {
    names: BTreeSet<String>,
}

impl Known {
    fn find(files: &[TextFile], page: &str) -> Self {
        let words = page.split('`').filter_map(|word| word.strip_prefix("test "));
        let wanted: Vec<String> = words.map(|name| format!("fn {name}(")).collect();
        let mut names = BTreeSet::new();
        for file in files {
            match file.path.as_str() {
                "crates/simulation/mutants.json" => {
                    names.extend(
                        quoted(&file.text, "\"name\": ").map(|name| format!("mutant {name}")),
                    );
                }
                "docs/crash-matrix.json" => {
                    names.extend(
                        quoted(&file.text, "\"cell\": ").map(|name| format!("cell {name}")),
                    );
                }
                "crates/simulation/src/fault_kind.rs" => {
                    names.extend(quoted(&file.text, "=> ").map(|name| format!("fault {name}")));
                }
                // Parsing every file once more would take its time.
                path if is_rust(path) && wanted.iter().any(|name| file.text.contains(name)) => {
                    names.extend(tests(file));
                }
                _ => {}
            }
        }
        Self { names }
    }

    fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }
}

/// The texts in quotation marks directly behind `mark`.
fn quoted<'t>(text: &'t str, mark: &'t str) -> impl Iterator<Item = &'t str> {
    text.split(mark).skip(1).filter_map(|rest| rest.strip_prefix('"')?.split('"').next())
}

/// Functions of tests, and the rules of conformance suites, which adapters' tests run one by one.
fn tests(file: &TextFile) -> Vec<String> {
    let is_suite = file.path.starts_with("crates/testkit/src/conformance/");
    let Ok(source) = Source::parse(&file.text) else { return Vec::new() };
    let all_tests = is_suite || sizes::is_test_path(&file.path);
    let pairs = source.tokens.iter().zip(source.tokens.iter().skip(1));
    let functions = pairs.filter(|(first, _)| first.text == "fn");
    let named = functions.filter(|(first, _)| all_tests || source.is_test(first.line));
    named.map(|(_, name)| format!("test {}", name.text)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{file, wrongs};
    use super::*;

    fn page(row_of_one: &str) -> Vec<TextFile> {
        let rows = STORIES.skip(1).map(|number| format!("| P{number} | x | `test it_holds` |\n"));
        let text: String = std::iter::once(format!("{row_of_one}\n")).chain(rows).collect();
        vec![
            file(PAGE, &text),
            file("crates/a/src/lib.rs", "#[test]\nfn it_holds() {}\nfn helper() {}\n"),
            file("crates/testkit/src/conformance/live.rs", "pub async fn all_hear() {}\n"),
            file("crates/simulation/mutants.json", "[{ \"name\": \"no_fence\" }]"),
            file("crates/simulation/src/fault_kind.rs", "Slow => \"slow\", \"Later.\";"),
            file("docs/crash-matrix.json", "[{ \"cell\": \"worker/pulled/killed\" }]"),
        ]
    }

    #[test]
    fn what_exists_may_be_named() {
        let all = "`test it_holds` `test all_hear` `mutant no_fence` `fault slow` `cell worker/pulled/killed`";
        assert_eq!(check(&page(&format!("| P1 | x | {all} |"))), []);
    }

    #[test]
    fn what_does_not_exist_is_named() {
        for name in ["test helper", "test it_held", "mutant slow", "fault no_fence", "cell worker"]
        {
            let expected = format!("{PAGE}:1: story P1: there is no {name}");
            assert_eq!(wrongs(&check(&page(&format!("| P1 | x | `{name}` |")))), [expected]);
        }
    }

    #[test]
    fn a_story_is_neither_left_out_nor_left_unshown() {
        assert_eq!(wrongs(&check(&page(""))), [format!("{PAGE}: story P1 is missing")]);
        let unshown = wrongs(&check(&page("| P1 | x | trust us |")));
        assert_eq!(unshown, [format!("{PAGE}:1: nothing shows story P1")]);
        assert_eq!(check(&[]), []);
    }
}

//! Recorded streams stay data: no code, text or test may know one of them by name, or a reader could
//! be written for the recordings and not for what endpoints send.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use super::{Problem, TextFile};

/// Where the recordings lie, and who runs them.
pub const FOLDER: &str = "crates/model-openai/corpus/";
const INDEX: &str = "crates/model-openai/corpus/index.json";
const MAY_NAME: [&str; 3] =
    [FOLDER, "crates/model-openai/examples/streams/", "crates/model-openai/fuzz/"];

#[derive(Deserialize)]
struct Case {
    id: String,
}

/// Finds ids of recordings outside their folder and their runners.
pub fn check(files: &[TextFile]) -> Result<Vec<Problem>> {
    let Some(index) = files.iter().find(|file| file.path == INDEX) else { return Ok(Vec::new()) };
    let cases: Vec<Case> = serde_json::from_str(&index.text).context(INDEX)?;
    let mut ids: BTreeSet<String> = cases.into_iter().map(|case| case.id).collect();
    let bodies =
        files.iter().filter_map(|file| file.path.strip_prefix(FOLDER)?.strip_suffix(".sse"));
    ids.extend(bodies.map(str::to_owned));
    let others = files.iter().filter(|file| !may_name(&file.path));
    Ok(others.flat_map(|file| named(&ids, file)).collect())
}

fn may_name(path: &str) -> bool {
    MAY_NAME.iter().any(|folder| path.starts_with(folder))
}

fn named(ids: &BTreeSet<String>, file: &TextFile) -> Vec<Problem> {
    let lines = file.text.lines().enumerate();
    let found = lines.flat_map(|(index, line)| {
        let known = words(line).filter(|word| ids.contains(*word));
        known.map(move |word| (index.saturating_add(1), word))
    });
    let fix = "write a test of your own about the behaviour, with bytes of your own";
    found
        .map(|(line, id)| Problem::at(&file.path, line, format!("names the recording {id}"), fix))
        .collect()
}

/// Runs of letters, digits and hyphens.
fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '-')
}

#[cfg(test)]
mod tests {
    use super::super::testing::{file, wrongs};
    use super::*;

    #[test]
    fn a_recording_is_named_by_its_runner_alone() {
        let text = "// see 900-made-up, \"901-a-later-turn.sse\", 902-nothing\n";
        let files = [
            file(INDEX, r#"[{"id": "900-made-up", "file": "900-made-up.sse"}]"#),
            file(&format!("{FOLDER}901-a-later-turn.sse"), ""),
            file("crates/model-openai/examples/streams/main.rs", text),
            file("crates/model-openai/src/reader/mod.rs", text),
            file("docs/900-made-up.md", "plain"),
        ];
        let problems = check(&files).unwrap();
        assert_eq!(
            wrongs(&problems),
            [
                "crates/model-openai/src/reader/mod.rs:1: names the recording 900-made-up",
                "crates/model-openai/src/reader/mod.rs:1: names the recording 901-a-later-turn",
            ]
        );
    }

    #[test]
    fn without_recordings_nothing_is_asked() {
        assert_eq!(check(&[file("a.rs", "")]).unwrap(), []);
    }
}

//! Files that are made from code: checked in for readers, kept equal to what the code says.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context as _, Result};

use super::{Problem, TextFile};
use crate::house::House;

/// Every generated file: path relative to the root, and its text.
pub fn generated() -> Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    for (name, schema) in proto::schema::all() {
        let text = serde_json::to_string_pretty(&schema).context(name)?;
        files.insert(format!("{SCHEMAS}{name}"), format!("{text}\n"));
    }
    Ok(files)
}

const SCHEMAS: &str = "proto/schema/";

/// Compares the checkout with what the code says.
pub fn check(files: &[TextFile]) -> Result<Vec<Problem>> {
    Ok(compare(&generated()?, files))
}

fn compare(generated: &BTreeMap<String, String>, files: &[TextFile]) -> Vec<Problem> {
    let fix = "run `cargo xtask tidy --write` and read the difference before you commit it";
    let mut problems = Vec::new();
    for (path, text) in generated {
        match files.iter().find(|file| file.path == *path) {
            Some(file) if file.text == *text => {}
            Some(_) => problems.push(Problem::in_file(path, "differs from the code", fix)),
            None => problems.push(Problem::in_file(path, "is missing", fix)),
        }
    }
    let strays = files.iter().filter(|file| file.path.starts_with(SCHEMAS));
    for stray in strays.filter(|file| !generated.contains_key(&file.path)) {
        problems.push(Problem::in_file(&stray.path, "is made by no code", "delete it"));
    }
    problems
}

/// Writes what differs and returns the paths.
pub fn write(house: &House) -> Result<Vec<String>> {
    let mut written = Vec::new();
    for (path, text) in generated()? {
        let place = house.root.join(&path);
        if fs::read_to_string(&place).is_ok_and(|there| there == text) {
            continue;
        }
        if let Some(folder) = place.parent() {
            fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        }
        fs::write(&place, text).with_context(|| path.clone())?;
        written.push(path);
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{file, wrongs};
    use super::*;

    fn generated_one() -> BTreeMap<String, String> {
        BTreeMap::from([("proto/schema/a.json".to_owned(), "{}\n".to_owned())])
    }

    #[test]
    fn a_generated_file_that_is_stale_missing_or_left_over_is_named() {
        let stale = file("proto/schema/a.json", "{ }\n");
        let stray = file("proto/schema/b.json", "{}\n");
        assert_eq!(
            wrongs(&compare(&generated_one(), &[stale, stray])),
            [
                "proto/schema/a.json: differs from the code",
                "proto/schema/b.json: is made by no code",
            ]
        );
        let missing = wrongs(&compare(&generated_one(), &[]));
        assert_eq!(missing, ["proto/schema/a.json: is missing"]);
    }

    #[test]
    fn a_fresh_file_passes() {
        let fresh = file("proto/schema/a.json", "{}\n");
        assert_eq!(compare(&generated_one(), &[fresh]), []);
    }
}

//! Every error code has its page in the documentation, and every page its code.

use proto::error_code::ErrorCode;

use super::{Problem, TextFile};

const FOLDER: &str = "docs/errors/";

/// Compares the codes with the pages, once there are pages.
pub fn check(files: &[TextFile]) -> Vec<Problem> {
    let codes: Vec<&str> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
    compare(&codes, files)
}

fn compare(codes: &[&str], files: &[TextFile]) -> Vec<Problem> {
    let pages: Vec<&str> = files
        .iter()
        .filter_map(|file| file.path.strip_prefix(FOLDER)?.strip_suffix(".md"))
        .filter(|page| *page != "README")
        .collect();
    if pages.is_empty() {
        return Vec::new();
    }
    let path = |name: &str| format!("{FOLDER}{name}.md");
    let missing = codes.iter().filter(|code| !pages.contains(code)).map(|code| {
        Problem::in_file(&path(code), "is missing", "say what happened, why, and what to do")
    });
    let strays = pages.iter().filter(|page| !codes.contains(page)).map(|page| {
        Problem::in_file(&path(page), "explains no error code", "delete it or name it after a code")
    });
    missing.chain(strays).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{file, wrongs};
    use super::*;

    #[test]
    fn a_code_without_a_page_and_a_page_without_a_code_are_named() {
        let files = [file("docs/errors/denied.md", ""), file("docs/errors/old.md", "")];
        assert_eq!(
            wrongs(&compare(&["denied", "timed_out"], &files)),
            ["docs/errors/timed_out.md: is missing", "docs/errors/old.md: explains no error code"]
        );
    }

    #[test]
    fn nothing_is_asked_before_the_first_page() {
        assert_eq!(compare(&["denied"], &[]), []);
    }
}

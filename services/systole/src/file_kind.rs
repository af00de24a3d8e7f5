//! What a file is: what it says decides, then its name.

use std::path::Path;

/// What the program reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Who an agent is.
    Agent,
    /// Which tools there are.
    Manifest,
    /// A scripted model.
    Rehearsal,
}

/// What to do about a file that could be anything.
pub(crate) const KINDS: &str = "expected an agent file (`name:`, `role:`, `model:`, `tools:`), a tool \
     file (`tools:` with one `- name: …` each) or a rehearsal (`rules:` or `cases:`); found none of their fields. \
     Fix: call it agent.yaml, tools.yaml or rehearsal.yaml, or write the fields";

impl Kind {
    /// For people.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Agent => "an agent file",
            Self::Manifest => "a tool file",
            Self::Rehearsal => "a rehearsal",
        }
    }
}

/// What a file is, if anything tells.
pub(crate) fn kind(path: &Path, text: &str) -> Option<Kind> {
    said(text).or_else(|| named(path)).or_else(|| hinted(text))
}

/// What its own fields say without a doubt.
pub(crate) fn said(text: &str) -> Option<Kind> {
    let has = |field: &str| has_field(text, field);
    if has("rules") || has("cases") {
        Some(Kind::Rehearsal)
    } else if has("role") || has("model") {
        Some(Kind::Agent)
    } else if has("sources") || (has("tools") && lists_maps(text)) {
        Some(Kind::Manifest)
    } else {
        None
    }
}

fn named(path: &Path) -> Option<Kind> {
    let name = path.file_name()?.to_str()?.to_lowercase();
    let kinds = [
        ("rehearsal", Kind::Rehearsal),
        ("agent", Kind::Agent),
        ("tools", Kind::Manifest),
        ("manifest", Kind::Manifest),
    ];
    kinds.into_iter().find(|(word, _)| name.contains(word)).map(|(_, kind)| kind)
}

/// Fields that only one kind has, or nearly.
fn hinted(text: &str) -> Option<Kind> {
    let has_any = |fields: &[&str]| fields.iter().any(|field| has_field(text, field));
    if has_any(&["instructions", "limits", "manifest"]) {
        Some(Kind::Agent)
    } else if has_any(&["tools", "run", "command", "effect"]) || text.lines().any(is_item) {
        Some(Kind::Manifest)
    } else {
        None
    }
}

fn has_field(text: &str, field: &str) -> bool {
    text.lines()
        .any(|line| line.strip_prefix(field).is_some_and(|rest| rest.trim_start().starts_with(':')))
}

fn is_item(line: &str) -> bool {
    line.starts_with("- ")
}

/// Whether there is a list whose items have names.
fn lists_maps(text: &str) -> bool {
    let is_named = |line: &str| line.contains("name:");
    text.lines().any(|line| {
        let line = line.trim_start();
        is_named(line) && (line.starts_with("- ") || line.starts_with('{') || line.contains("[{"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_says_decides_before_its_name() {
        let of = |name: &str, text: &str| kind(Path::new(name), text);
        assert_eq!(of("x.yaml", "name: a\nrole: b\nmodel: c\ntools: []\n"), Some(Kind::Agent));
        assert_eq!(of("x.yaml", "tools:\n  - name: a\n"), Some(Kind::Manifest));
        assert_eq!(of("x.yaml", "# words\nrules:\n  - say: hi\n"), Some(Kind::Rehearsal));
        assert_eq!(of("agent.yaml", "cases:\n  - name: a\n"), Some(Kind::Rehearsal));
        assert_eq!(of("agent.yaml", "rules: []\n"), Some(Kind::Rehearsal));
        assert_eq!(of("agent.yaml", "tools: [a]\n"), Some(Kind::Agent));
        assert_eq!(of("my-tools.yaml", ""), Some(Kind::Manifest));
        assert_eq!(of("a/agent.yaml", ""), Some(Kind::Agent));
        assert_eq!(of("rehearsal.yaml", "rule:\n  - say: a\n"), Some(Kind::Rehearsal));
        assert_eq!(of("x.yaml", "- name: a\n"), Some(Kind::Manifest));
        assert_eq!(of("x.yaml", "# nothing\n"), None);
    }
}

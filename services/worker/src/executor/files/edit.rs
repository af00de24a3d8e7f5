//! `edit_file {path, old, new}`: replaces the one place where `old` occurs.

use std::fmt::Write as _;
use std::io::Read as _;

use super::arguments::Arguments;
use super::root::{Root, refused};
use super::write::Target;
use super::{Halt, MOST_CONTENT, Output, Refused};

/// What to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Edit {
    path: String,
    old: String,
    new: String,
}

impl Edit {
    pub(super) fn new(arguments: &Arguments<'_>) -> Result<Self, String> {
        let edit = Self {
            path: arguments.text("path")?,
            old: arguments.text("old")?,
            new: arguments.text("new")?,
        };
        if edit.old.is_empty() {
            return Err("argument `old` is empty: give the text to replace".to_owned());
        }
        if edit.old == edit.new {
            return Err("arguments `old` and `new` are equal: nothing would change".to_owned());
        }
        Ok(edit)
    }

    pub(super) fn work(&self, root: &Root, halt: &Halt) -> Result<Output, Refused> {
        let place = root.place(&self.path)?;
        let target = Target::find(root, place.clone(), false)?;
        let text = self.text(root.read(&place)?)?;
        let (before, after) = self.split(&text)?;
        let changed = [before, &self.new, after].concat();
        if changed.len() > MOST_CONTENT {
            return Err(self.too_long());
        }
        target.replace(changed.as_bytes(), halt)?;
        Ok(Output::from(self.difference(before, after)))
    }

    fn text(&self, file: std::fs::File) -> Result<String, Refused> {
        let mut bytes = Vec::new();
        let limit = u64::try_from(MOST_CONTENT).unwrap_or(u64::MAX).saturating_add(1);
        let read = file.take(limit).read_to_end(&mut bytes);
        if read.map_err(|error| refused(&self.path, &error))? > MOST_CONTENT {
            return Err(self.too_long());
        }
        String::from_utf8(bytes).map_err(|_invalid| {
            Refused(format!("`{}` is not valid UTF-8: this tool edits text only", self.path))
        })
    }

    fn too_long(&self) -> Refused {
        Refused(format!("`{}` has more than {MOST_CONTENT} bytes: edit smaller files", self.path))
    }

    /// What lies before and behind the one place.
    fn split<'text>(&self, text: &'text str) -> Result<(&'text str, &'text str), Refused> {
        let Some((before, after)) = text.split_once(&self.old) else {
            return Err(self.absent(text));
        };
        // Places that overlap are as ambiguous as others.
        let mut rest = self.old.chars();
        rest.next();
        let second = [rest.as_str(), after].concat();
        if second.contains(&self.old) {
            return Err(self.ambiguous(text));
        }
        Ok((before, after))
    }

    fn absent(&self, text: &str) -> Refused {
        let first = self.old.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("");
        let near = text.lines().position(|line| !first.is_empty() && line.trim() == first);
        let hint = match near {
            Some(index) => format!(
                "line {} is like its first line, but blanks or later lines differ: read the file there and copy the text exactly",
                index + 1
            ),
            None => "read the file and copy the text exactly".to_owned(),
        };
        Refused(format!("`old` does not occur in `{}`: {hint}", self.path))
    }

    fn ambiguous(&self, text: &str) -> Refused {
        let lines: Vec<String> = text
            .match_indices(&self.old)
            .take(SHOWN)
            .map(|(start, _)| line_at(text, start).to_string())
            .collect();
        Refused(format!(
            "`old` occurs more than once in `{}` (lines {}): add lines around it until it is unique",
            self.path,
            lines.join(", ")
        ))
    }

    /// The changed lines as a whole, `-` before and `+` after.
    fn difference(&self, before: &str, after: &str) -> String {
        let start = before.rsplit('\n').next().unwrap_or("");
        let end = after.split('\n').next().unwrap_or("");
        let mut text = format!("edited {} at line {}\n", self.path, line_at(before, before.len()));
        show(&mut text, '-', &[start, &self.old, end].concat());
        show(&mut text, '+', &[start, &self.new, end].concat());
        text
    }
}

/// Lines or places that a message shows at most.
const SHOWN: usize = 20;
const SHOWN_LINE: usize = 200;

fn show(text: &mut String, mark: char, block: &str) {
    for line in block.lines().take(SHOWN) {
        let line: String = line.chars().take(SHOWN_LINE).collect();
        writeln!(text, "{mark}{line}").unwrap_or_default();
    }
    let more = block.lines().count().saturating_sub(SHOWN);
    if more > 0 {
        writeln!(text, "{mark}[{more} more lines]").unwrap_or_default();
    }
}

/// The line of a byte, from 1.
fn line_at(text: &str, byte: usize) -> usize {
    text.bytes().take(byte).filter(|byte| *byte == b'\n').count() + 1
}

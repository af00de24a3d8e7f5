//! `list_files {path?, depth?}`: one entry per line, folders with a `/`, files with their size.

use std::fmt::Write as _;

use ignore::{DirEntry, WalkBuilder};

use super::arguments::Arguments;
use super::root::{Root, refused};
use super::{Halt, Output, Refused};

/// What to list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct List {
    path: String,
    depth: usize,
}

const DEPTH: usize = 2;
const MOST_DEPTH: usize = 20;
const MOST_ENTRIES: usize = 2000;

impl List {
    pub(super) fn new(arguments: &Arguments<'_>) -> Result<Self, String> {
        let path = arguments.optional_text("path")?.unwrap_or_default();
        Ok(Self { path, depth: arguments.count("depth", DEPTH, MOST_DEPTH)? })
    }

    pub(super) fn work(&self, root: &Root, halt: &Halt) -> Result<Output, Refused> {
        let place = root.place(&self.path)?;
        let start = root.real().join(&place.resolved);
        // A file is listed as itself; what cannot be looked at is an error here, not an empty list.
        start.metadata().map_err(|error| refused(&self.path, &error))?;
        let mut text = String::new();
        for (count, entry) in self.walk(&start).enumerate() {
            halt.check()?;
            if count == MOST_ENTRIES {
                text.push_str("[more entries follow: list a folder below, or lower the depth]\n");
                break;
            }
            match entry {
                Ok(entry) => line(&mut text, root, &entry),
                Err(error) => drop(writeln!(text, "[not readable: {error}]")),
            }
        }
        if text.is_empty() {
            text.push_str("[empty folder]\n");
        }
        Ok(Output::from(text))
    }

    fn walk(
        &self,
        start: &std::path::Path,
    ) -> impl Iterator<Item = Result<DirEntry, ignore::Error>> {
        let mut walk = WalkBuilder::new(start);
        walk.standard_filters(false).follow_links(false).max_depth(Some(self.depth));
        walk.sort_by_file_name(Ord::cmp);
        walk.build().filter(|entry| {
            // The start itself, unless it is a file.
            !entry.as_ref().is_ok_and(|entry| entry.depth() == 0 && is_folder(entry))
        })
    }
}

fn is_folder(entry: &DirEntry) -> bool {
    entry.file_type().is_some_and(|kind| kind.is_dir())
}

fn line(text: &mut String, root: &Root, entry: &DirEntry) {
    let path = entry.path().strip_prefix(root.real()).unwrap_or_else(|_| entry.path()).display();
    let written = match entry.file_type() {
        Some(kind) if kind.is_dir() => writeln!(text, "{path}/"),
        Some(kind) if kind.is_symlink() => writeln!(text, "{path} (link)"),
        Some(kind) if kind.is_file() => {
            let size = entry.metadata().map_or(0, |about| about.len());
            writeln!(text, "{path} ({size} bytes)")
        }
        Some(_) | None => writeln!(text, "{path} (special)"),
    };
    written.unwrap_or_default();
}

//! `search_files {pattern, path?, glob?, max?}`: lines of text files that match a regular
//! expression. Files that `.gitignore` names, `.git` folders and binary files are passed over.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;

use ignore::WalkBuilder;
use ignore::overrides::{Override, OverrideBuilder};
use regex::bytes::{Regex, RegexBuilder};

use super::arguments::Arguments;
use super::read::is_binary;
use super::root::{Place, Root, refused};
use super::{Halt, MOST_OUTPUT, Output, Refused};

/// What to search for.
#[derive(Clone, Debug)]
pub(super) struct Search {
    pattern: Regex,
    path: String,
    glob: Option<String>,
    max: usize,
}

impl PartialEq for Search {
    fn eq(&self, other: &Self) -> bool {
        let key = |search: &Self| {
            (
                search.pattern.as_str().to_owned(),
                search.path.clone(),
                search.glob.clone(),
                search.max,
            )
        };
        key(self) == key(other)
    }
}

impl Eq for Search {}

const MAX: usize = 100;
const MOST_MATCHES: usize = 1000;
/// Bytes of a line that are searched and of a match that are shown.
const MOST_LINE: u64 = 64 * 1024;
const SHOWN_LINE: usize = 300;
/// Memory of a compiled pattern.
const PATTERN_SIZE: usize = 1024 * 1024;

impl Search {
    pub(super) fn new(arguments: &Arguments<'_>) -> Result<Self, String> {
        let pattern = arguments.text("pattern")?;
        let compiled = RegexBuilder::new(&pattern).size_limit(PATTERN_SIZE).build();
        let pattern = compiled.map_err(|error| {
            format!("argument `pattern` is not a regular expression that can be used: {error}")
        })?;
        Ok(Self {
            pattern,
            path: arguments.optional_text("path")?.unwrap_or_default(),
            glob: arguments.optional_text("glob")?,
            max: arguments.count("max", MAX, MOST_MATCHES)?,
        })
    }

    pub(super) fn work(&self, root: &Root, halt: &Halt) -> Result<Output, Refused> {
        let place = root.place(&self.path)?;
        let start = root.real().join(&place.resolved);
        start.metadata().map_err(|error| refused(&self.path, &error))?;
        let mut found = Found::default();
        for entry in self.walk(root, &start)? {
            halt.check()?;
            let Ok(entry) = entry else { continue };
            let resolved = entry.path().strip_prefix(root.real()).unwrap_or_else(|_| Path::new(""));
            let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
            if is_file && !self.search(root, resolved, &mut found, halt)? {
                break;
            }
        }
        Ok(Output::from(found.finish(self.max)))
    }

    fn walk(&self, root: &Root, start: &Path) -> Result<ignore::Walk, Refused> {
        let mut walk = WalkBuilder::new(start);
        // Nothing outside the root decides what is found.
        walk.hidden(false).parents(false).git_global(false).git_exclude(false).require_git(false);
        walk.follow_links(false).overrides(self.only(root)?).sort_by_file_name(Ord::cmp);
        walk.filter_entry(|entry| entry.file_name() != ".git");
        Ok(walk.build())
    }

    fn only(&self, root: &Root) -> Result<Override, Refused> {
        let mut only = OverrideBuilder::new(root.real());
        let built = match &self.glob {
            Some(glob) => only.add(glob).and_then(|only| only.build()),
            None => only.build(),
        };
        built.map_err(|error| Refused(format!("argument `glob` is not a glob: {error}")))
    }

    /// False when enough was found. Files that cannot be opened are passed over.
    fn search(
        &self,
        root: &Root,
        resolved: &Path,
        found: &mut Found,
        halt: &Halt,
    ) -> Result<bool, Refused> {
        let given = resolved.display().to_string();
        let place = Place { given: given.clone(), resolved: resolved.to_owned() };
        let Ok(file) = root.read(&place) else { return Ok(true) };
        let mut reader = BufReader::with_capacity(64 * 1024, file);
        if reader.fill_buf().map_or(true, is_binary) {
            return Ok(true);
        }
        let mut number = 1_u64;
        let mut line = Vec::new();
        loop {
            halt.check()?;
            line.clear();
            match reader.by_ref().take(MOST_LINE).read_until(b'\n', &mut line) {
                Ok(1..) => {}
                Ok(0) | Err(_) => return Ok(true),
            }
            if self.pattern.is_match(line.strip_suffix(b"\n").unwrap_or(&line)) {
                if found.is_full(self.max) {
                    found.more = true;
                    return Ok(false);
                }
                found.add(&given, number, &line);
            }
            number += u64::from(line.ends_with(b"\n"));
        }
    }
}

/// What was found so far.
#[derive(Debug, Default)]
struct Found {
    text: String,
    count: usize,
    more: bool,
}

impl Found {
    fn is_full(&self, max: usize) -> bool {
        self.count >= max || self.text.len() >= MOST_OUTPUT
    }

    fn add(&mut self, path: &str, number: u64, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        let shown: String = line.trim_end().chars().take(SHOWN_LINE).collect();
        writeln!(self.text, "{path}:{number}: {shown}").unwrap_or_default();
        self.count += 1;
    }

    fn finish(mut self, max: usize) -> String {
        if self.count == 0 {
            self.text.push_str("[no match]\n");
        }
        if self.more {
            let note = "[more matches follow the first";
            writeln!(
                self.text,
                "{note} {}: narrow the pattern, or raise max up to {MOST_MATCHES}]",
                self.count.min(max)
            )
            .unwrap_or_default();
        }
        self.text
    }
}

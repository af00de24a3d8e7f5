//! `read_file {path, from_line?, lines?}`: lines of a text file, a page at a time.

use std::io::{BufRead as _, BufReader, Read as _};

use bytes::Bytes;

use super::arguments::Arguments;
use super::root::{Root, refused};
use super::{Halt, MOST_OUTPUT, Output, Refused};

/// What to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Read {
    path: String,
    from_line: usize,
    lines: usize,
}

const LINES: usize = 2000;

impl Read {
    pub(super) fn new(arguments: &Arguments<'_>) -> Result<Self, String> {
        Ok(Self {
            path: arguments.text("path")?,
            from_line: arguments.count("from_line", 1, usize::MAX)?,
            lines: arguments.count("lines", LINES, usize::MAX)?,
        })
    }

    pub(super) fn work(&self, root: &Root, halt: &Halt) -> Result<Output, Refused> {
        let file = root.read(&root.place(&self.path)?)?;
        let mut reader = BufReader::with_capacity(CHUNK, file);
        self.check_is_text(reader.fill_buf().map_err(|error| refused(&self.path, &error))?)?;
        let mut page = Page { line: 1, bytes: Vec::new(), more: false };
        while !page.more && self.step(&mut page, &mut reader)? {
            halt.check()?;
        }
        self.finish(page)
    }

    fn check_is_text(&self, start: &[u8]) -> Result<(), Refused> {
        if is_binary(start) {
            let why = "is not a text file: this tool reads text only";
            return Err(Refused(format!("`{}` {why}", self.path)));
        }
        Ok(())
    }

    /// Takes at most a chunk; false at the end of the file.
    fn step(
        &self,
        page: &mut Page,
        reader: &mut BufReader<std::fs::File>,
    ) -> Result<bool, Refused> {
        let mut part = Vec::new();
        let limit = u64::try_from(CHUNK).unwrap_or(u64::MAX);
        let read = reader.by_ref().take(limit).read_until(b'\n', &mut part);
        if read.map_err(|error| refused(&self.path, &error))? == 0 {
            return Ok(false);
        }
        if page.line >= self.from_line {
            page.more = page.line - self.from_line >= self.lines
                || page.bytes.len() + part.len() > MOST_OUTPUT;
            if !page.more {
                page.bytes.extend(&part);
            }
        }
        if !page.more && part.ends_with(b"\n") {
            page.line += 1;
        }
        Ok(true)
    }

    fn finish(&self, mut page: Page) -> Result<Output, Refused> {
        let next = page.line;
        if page.bytes.is_empty() && next < self.from_line {
            let why = format!("`{}` has no line {}: it ends before", self.path, self.from_line);
            return Err(Refused(why));
        }
        if page.more {
            if !page.bytes.ends_with(b"\n") {
                page.bytes.push(b'\n');
            }
            let note = if next == self.from_line {
                format!("[line {next} is longer than one call returns; its rest was left out]\n")
            } else {
                format!("[more lines follow: continue with from_line {next}]\n")
            };
            page.bytes.extend(note.as_bytes());
        }
        let total = u64::try_from(page.bytes.len()).unwrap_or(u64::MAX);
        Ok(Output { bytes: Bytes::from(page.bytes), total })
    }
}

/// What was read so far.
struct Page {
    /// The line that comes next.
    line: usize,
    bytes: Vec<u8>,
    /// Whether the page is full and the file goes on.
    more: bool,
}

const CHUNK: usize = 64 * 1024;

/// Whether a file that starts like this is no text: text has no zero bytes.
pub(super) fn is_binary(start: &[u8]) -> bool {
    start.iter().take(8192).any(|byte| *byte == 0)
}

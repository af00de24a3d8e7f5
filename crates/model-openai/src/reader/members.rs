//! The members of the objects at one depth of a text that is being scanned.

use super::json_scan::Step;
use super::lenient;

/// Finds the members of the objects at one depth.
#[derive(Debug)]
pub(crate) struct Members {
    level: u8,
    key_start: usize,
    key: String,
    value_start: Option<usize>,
}

impl Members {
    pub(crate) fn new(level: u8) -> Self {
        Self { level, key_start: 0, key: String::new(), value_start: None }
    }

    /// The name of the member that is open or has just ended.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// Names the member by hand.
    pub(crate) fn set_key(&mut self, key: &str) {
        key.clone_into(&mut self.key);
    }

    /// Follows a step that happened at byte `at` of `text` and left `depth` brackets open; answers
    /// the extent of a value that has just ended.
    pub(crate) fn follow(
        &mut self,
        step: Step,
        depth: u8,
        at: usize,
        text: &str,
    ) -> Option<(usize, usize)> {
        let inner = self.level.saturating_add(1);
        match step {
            Step::KeyOpen if depth == self.level => {
                self.key_start = at.saturating_add(1);
                None
            }
            Step::KeyClose if depth == self.level => {
                self.key = lenient::unescape(text.get(self.key_start..at).unwrap_or_default());
                None
            }
            Step::StringOpen | Step::WordOpen if depth == self.level => self.begin(at),
            Step::Open(_) if depth == inner => self.begin(at),
            Step::StringClose | Step::Close if depth == self.level => {
                self.end(at.saturating_add(1))
            }
            Step::Comma if depth == self.level => self.end(at),
            Step::Close if depth.saturating_add(1) == self.level => self.end(at),
            Step::Quiet
            | Step::Open(_)
            | Step::Close
            | Step::KeyOpen
            | Step::KeyClose
            | Step::StringOpen
            | Step::StringClose
            | Step::WordOpen
            | Step::Comma
            | Step::Bad => None,
        }
    }

    fn begin(&mut self, at: usize) -> Option<(usize, usize)> {
        self.value_start = Some(at);
        None
    }

    fn end(&mut self, at: usize) -> Option<(usize, usize)> {
        self.value_start.take().map(|start| (start, at))
    }
}

//! JSON at the start of a reply: a call if it names a tool and its arguments, else an answer. What
//! comes behind it is not waited for.

use serde_json::Value;

use super::envelope::{self, KEYS, NAME_KEYS, Named};
use super::json_scan::{Scanner, Step};
use super::lenient;
use super::members::Members;
use super::names::Tools;

/// Most blanks between the JSON and the end of its fence.
const BEHIND: usize = 256;
const FENCE: &str = "```";

/// The JSON so far. It may stand in a fence.
#[derive(Debug)]
pub(crate) struct Whole {
    start: usize,
    scanned: usize,
    scan: Scanner,
    members: Members,
    is_known: bool,
    is_fenced: bool,
    end: Option<usize>,
}

impl Whole {
    /// JSON that begins at byte `start` of the text.
    pub(crate) fn new(start: usize, is_fenced: bool) -> Self {
        Self {
            start,
            is_fenced,
            scanned: start,
            scan: Scanner::new(),
            members: Members::new(1),
            is_known: false,
            end: None,
        }
    }

    /// Whether it has named a tool and not ended.
    pub(crate) fn is_call_so_far(&self) -> bool {
        self.is_known && self.end.is_none()
    }

    /// The calls that the whole spells out.
    pub(crate) fn calls(&self, held: &str, tools: &Tools) -> Option<Vec<Named>> {
        let value = lenient::parse(held.get(self.start..self.end?)?).ok()?;
        envelope::read(&value, tools)
    }

    /// Where it has ended, together with its fence.
    pub(crate) fn closed_at(&self, held: &str) -> Option<usize> {
        let end = self.end?;
        if !self.is_fenced {
            return Some(end);
        }
        let rest = held.get(end..)?.trim_start().strip_prefix(FENCE)?;
        Some(held.len().saturating_sub(rest.len()))
    }

    /// Scans on; false once it can no longer be a call.
    pub(crate) fn advance(&mut self, held: &str, tools: &Tools) -> bool {
        let bytes = held.as_bytes();
        if let Some(end) = self.end {
            return self.may_close(held, end);
        }
        while let Some(byte) = bytes.get(self.scanned) {
            let at = self.scanned;
            self.scanned = at.saturating_add(1);
            let step = self.scan.step(*byte);
            if step == Step::Bad || (step != Step::Quiet && !self.follow(step, at, held, tools)) {
                return false;
            }
            if self.scan.is_done() {
                self.end = Some(self.scanned);
                return self.may_close(held, self.scanned);
            }
        }
        true
    }

    fn may_close(&self, held: &str, end: usize) -> bool {
        let behind = held.get(end..).unwrap_or_default();
        let visible = behind.trim_start();
        let blanks = behind.len().saturating_sub(visible.len());
        let is_end = FENCE.starts_with(visible) || visible.starts_with(FENCE);
        !self.is_fenced || (is_end && blanks <= BEHIND)
    }

    /// An object around a call has only keys of a call, and names a tool.
    fn follow(&mut self, step: Step, at: usize, held: &str, tools: &Tools) -> bool {
        let is_array = held.as_bytes().get(self.start) == Some(&b'[');
        if is_array {
            return true;
        }
        let ended = self.members.follow(step, self.scan.depth(), at, held);
        if step == Step::KeyClose && self.scan.depth() == 1 {
            return KEYS.contains(&self.members.key());
        }
        let Some((start, end)) = ended else { return true };
        if !NAME_KEYS.contains(&self.members.key()) {
            return true;
        }
        let name = held.get(start..end).and_then(|raw| lenient::parse(raw.trim()).ok());
        self.is_known =
            name.as_ref().and_then(Value::as_str).is_some_and(|name| tools.resolve(name).is_some());
        self.is_known
    }
}

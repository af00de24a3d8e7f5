//! Calls that leaked into the text because a server did not parse its model's markup.
//!
//! Only registered tools are called, and only from markup that stands in the open: what is inside
//! code, a fence within prose or a thought is an example. Text that may still turn out to be markup
//! is held back; everything else goes through at once.

use std::mem;

use serde_json::Value;

use super::arguments::cut;
use super::code::Code;
use super::dialects::{BARE_OPENER, CLOSERS, FENCES, INNER, OPENERS};
use super::envelope::{self, Named, Xml};
use super::json_scan::{Run, Scanner};
use super::lenient;
use super::names::Tools;
use super::whole::Whole;

/// What the text holds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Found {
    /// Said.
    Text(String),
    /// A call.
    Call(Named),
    /// A call that has not ended.
    Cut { name: String, raw: String },
}

/// Longest markup between an opener and the arguments.
const HEAD: usize = 300;
/// Longest beginning that is held back until it is clear what it is.
const START: usize = 1024;
/// Blanks held back at the end of the text.
const BLANKS: usize = 256;
/// How often the end of an XML-like call is looked for.
const ATTEMPTS: u32 = 64;

#[derive(Debug)]
enum Mode {
    /// Nothing visible has come.
    Start,
    Prose,
    /// Behind an opener.
    Head {
        opener: &'static str,
    },
    /// In the JSON behind a head of so many bytes.
    Json {
        opener: &'static str,
        head: usize,
        scanned: usize,
        scan: Scanner,
    },
    /// In an XML-like call.
    Xml {
        searched: usize,
        attempts: u32,
    },
    /// In a list of Python calls.
    Python {
        scanned: usize,
        depth: u32,
        quote: Option<char>,
        escaped: bool,
    },
    /// In JSON at the very start.
    Whole(Whole),
    /// Behind a call.
    After {
        may_repeat: bool,
    },
    /// Structured calls have come: text is text.
    Off,
}

/// The search in one reply.
#[derive(Debug)]
pub(crate) struct TextCalls {
    mode: Mode,
    held: String,
    /// Bytes of `held` that the prose scan has already seen.
    seen: usize,
    code: Code,
    unread: bool,
}

impl TextCalls {
    pub(crate) fn new() -> Self {
        Self {
            mode: Mode::Start,
            held: String::new(),
            seen: 0,
            code: Code::default(),
            unread: false,
        }
    }

    /// Markup was there and made no call.
    pub(crate) fn saw_unread_markup(&self) -> bool {
        self.unread
    }

    /// A structured call has come: what was held is text.
    pub(crate) fn switch_off(&mut self, out: &mut Vec<Found>) {
        if !matches!(self.mode, Mode::Off) {
            self.flush(out);
            self.mode = Mode::Off;
        }
    }

    /// Takes a piece of text.
    pub(crate) fn push(&mut self, text: &str, tools: &Tools, out: &mut Vec<Found>) {
        self.held.push_str(text);
        if tools.is_empty() {
            self.mode = Mode::Off;
        }
        while self.step(tools, out) {}
    }

    /// The reply is over.
    pub(crate) fn finish(&mut self, is_clean: bool, tools: &Tools, out: &mut Vec<Found>) {
        match mem::replace(&mut self.mode, Mode::Off) {
            Mode::Start | Mode::Prose | Mode::Python { .. } | Mode::Off => self.flush(out),
            Mode::After { .. } => self.held.clear(),
            Mode::Head { opener } => {
                self.unread |=
                    envelope::tool_in(&self.held, tools).is_some() || self.held.trim().is_empty();
                self.held.insert_str(0, opener);
                self.flush(out);
            }
            Mode::Json { head, .. } => {
                let name = self.held.get(..head).and_then(|head| envelope::tool_in(head, tools));
                let name = name.map(str::to_owned).or_else(|| envelope::name_so_far(&self.held));
                self.report_cut(name.as_deref(), tools, out);
            }
            Mode::Xml { .. } => {
                let name =
                    self.held.strip_prefix("<function=").and_then(|rest| rest.split_once('>'));
                let name = name.map(|(name, _)| name.to_owned());
                self.report_cut(name.as_deref(), tools, out);
            }
            Mode::Whole(whole) => self.finish_whole(&whole, is_clean, tools, out),
        }
    }

    fn report_cut(&mut self, name: Option<&str>, tools: &Tools, out: &mut Vec<Found>) {
        if let Some(name) = name.and_then(|name| tools.resolve(name)) {
            let raw = cut(&mem::take(&mut self.held));
            out.push(Found::Cut { name: name.to_owned(), raw });
        } else {
            self.unread = true;
            self.flush(out);
        }
    }

    fn finish_whole(&mut self, whole: &Whole, is_clean: bool, tools: &Tools, out: &mut Vec<Found>) {
        match whole.calls(&self.held, tools) {
            Some(calls) => {
                out.extend(calls.into_iter().map(Found::Call));
                self.held.clear();
            }
            None if whole.is_call_so_far() && !is_clean => {
                self.report_cut(envelope::name_so_far(&self.held).as_deref(), tools, out);
            }
            None => self.flush(out),
        }
    }

    fn flush(&mut self, out: &mut Vec<Found>) {
        self.seen = 0;
        let text = mem::take(&mut self.held);
        if !text.is_empty() {
            out.push(Found::Text(text));
        }
    }

    /// One transition; false when more text is needed.
    fn step(&mut self, tools: &Tools, out: &mut Vec<Found>) -> bool {
        match &mut self.mode {
            Mode::Off => {
                self.flush(out);
                false
            }
            Mode::Start => self.start(tools),
            Mode::Prose => self.prose(out),
            Mode::Head { opener } => {
                let opener = *opener;
                self.head(opener, out)
            }
            Mode::Json { .. } => self.json(tools, out),
            Mode::Xml { .. } => self.xml(tools, out),
            Mode::Python { .. } => self.python(tools, out),
            Mode::Whole(_) => self.whole(tools, out),
            Mode::After { may_repeat } => {
                let may_repeat = *may_repeat;
                self.after(may_repeat)
            }
        }
    }

    fn go(&mut self, mode: Mode) -> bool {
        self.seen = 0;
        self.mode = mode;
        true
    }

    fn start(&mut self, tools: &Tools) -> bool {
        let skipped = |c: char| c.is_whitespace() || matches!(c, '\u{feff}' | '\u{200b}');
        let visible = self.held.trim_start_matches(skipped);
        let offset = self.held.len().saturating_sub(visible.len());
        match visible.chars().next() {
            _ if self.held.len() > START => self.go(Mode::Prose),
            None => false,
            Some('{') => self.go_whole(offset, false),
            Some('`') => self.start_in_fence(offset),
            Some('[') => self.start_in_list(offset, tools),
            Some('c') if BARE_OPENER.starts_with(visible) => false,
            Some('c') if visible.starts_with(BARE_OPENER) => {
                self.held = visible.get(BARE_OPENER.len()..).unwrap_or_default().to_owned();
                self.go(Mode::Head { opener: BARE_OPENER })
            }
            Some(_) => self.go(Mode::Prose),
        }
    }

    fn go_whole(&mut self, start: usize, is_fenced: bool) -> bool {
        self.go(Mode::Whole(Whole::new(start, is_fenced)))
    }

    fn start_in_fence(&mut self, offset: usize) -> bool {
        let visible = self.held.get(offset..).unwrap_or_default();
        if "```".starts_with(visible) {
            return false;
        }
        let Some(info) = visible.strip_prefix("```") else { return self.go(Mode::Prose) };
        let Some((language, body)) = info.split_once('\n') else {
            let may_be = FENCES.iter().any(|fence| fence.starts_with(info.trim()));
            return !may_be && self.go(Mode::Prose);
        };
        if !FENCES.contains(&language.trim().to_ascii_lowercase().as_str()) {
            return self.go(Mode::Prose);
        }
        let inner = body.trim_start();
        match inner.chars().next() {
            None => false,
            Some('{' | '[') => self.go_whole(self.held.len().saturating_sub(inner.len()), true),
            Some(_) => self.go(Mode::Prose),
        }
    }

    /// `[` may begin a list of Python calls, an array of envelopes, or Mistral's mark.
    fn start_in_list(&mut self, offset: usize, tools: &Tools) -> bool {
        let visible = self.held.get(offset..).unwrap_or_default();
        if "[TOOL_CALLS]".starts_with(visible) {
            return false;
        }
        let inner = visible.get(1..).unwrap_or_default().trim_start();
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let end = inner.find(|c| !is_part(c)).unwrap_or(inner.len());
        let (name, rest) = inner.split_at_checked(end).unwrap_or((inner, ""));
        match rest.chars().next() {
            None if name.is_empty() || tools.may_become(name) => false,
            Some('{') if name.is_empty() => self.go_whole(offset, false),
            Some('(') if tools.resolve(name).is_some() => {
                self.go(Mode::Python { scanned: offset, depth: 0, quote: None, escaped: false })
            }
            Some(_) | None => self.go(Mode::Prose),
        }
    }

    fn prose(&mut self, out: &mut Vec<Found>) -> bool {
        let mut at = self.seen;
        while let Some(c) = self.held.get(at..).and_then(|rest| rest.chars().next()) {
            let rest = self.held.get(at..).unwrap_or_default();
            self.code.take(c);
            if self.code.is_open() || !matches!(c, '<' | '[' | 'f') {
                at += c.len_utf8();
                continue;
            }
            if let Some(opener) = OPENERS.iter().find(|opener| rest.starts_with(**opener)) {
                self.open(at, opener, out);
                return true;
            }
            if OPENERS.iter().any(|opener| opener.starts_with(rest)) {
                break;
            }
            at += c.len_utf8();
        }
        self.say(at, out);
        false
    }

    /// Says everything before byte `at` except blanks at its end: they vanish if markup follows.
    fn say(&mut self, at: usize, out: &mut Vec<Found>) {
        let head = self.held.get(..at).unwrap_or_default();
        let mut end = head.trim_end().len();
        if at.saturating_sub(end) > BLANKS {
            end = at;
        }
        let rest = self.held.split_off(end);
        let text = mem::replace(&mut self.held, rest);
        self.seen = at.saturating_sub(end);
        if !text.is_empty() {
            out.push(Found::Text(text));
        }
    }

    fn open(&mut self, at: usize, opener: &'static str, out: &mut Vec<Found>) {
        let mut rest = self.held.split_off(at);
        let said = mem::take(&mut self.held);
        if !said.trim().is_empty() {
            out.push(Found::Text(said.trim_end().to_owned()));
        }
        if opener == "<function=" {
            self.held = rest;
            self.go(Mode::Xml { searched: 0, attempts: 0 });
            return;
        }
        // The bracket of `functools[` belongs to the value.
        let length = opener.trim_end_matches('[').len();
        self.held = rest.split_off(length);
        self.go(Mode::Head { opener });
    }

    fn head(&mut self, opener: &'static str, out: &mut Vec<Found>) -> bool {
        let head = self.held.trim_start();
        if head.is_empty() || "<function=".starts_with(head) {
            return false;
        }
        if head.starts_with("<function=") {
            self.held = head.to_owned();
            return self.go(Mode::Xml { searched: 0, attempts: 0 });
        }
        let value = if head.starts_with('[')
            && !"[ARGS]".starts_with(head)
            && !head.starts_with("[ARGS]")
        {
            self.held.find('[')
        } else {
            self.held.find('{')
        };
        if let Some(value) = value {
            let scan = Scanner::new();
            return self.go(Mode::Json { opener, head: value, scanned: value, scan });
        }
        if self.held.len() > HEAD {
            self.held.insert_str(0, opener);
            self.flush(out);
            return self.go(Mode::Prose);
        }
        false
    }

    fn json(&mut self, tools: &Tools, out: &mut Vec<Found>) -> bool {
        let Mode::Json { opener, head, scanned, scan } = &mut self.mode else { return false };
        let (opener, head) = (*opener, *head);
        match scan.run(self.held.as_bytes().get(*scanned..).unwrap_or_default()) {
            Run::Open => {
                *scanned = self.held.len();
                false
            }
            Run::Bad => self.give_up(opener, out),
            Run::Done(length) => {
                let end = scanned.saturating_add(length);
                let calls = self.interpret(head, end, tools);
                let Some(calls) = calls else { return self.give_up(opener, out) };
                out.extend(calls.into_iter().map(Found::Call));
                self.held = self.held.split_off(end);
                let may_repeat = opener == "<tool_call>";
                self.go(Mode::After { may_repeat })
            }
        }
    }

    fn interpret(&self, head: usize, end: usize, tools: &Tools) -> Option<Vec<Named>> {
        let value = lenient::parse(self.held.get(head..end)?).ok()?;
        match (envelope::tool_in(self.held.get(..head)?, tools), value) {
            (Some(name), Value::Object(arguments)) => Some(vec![(name.to_owned(), arguments)]),
            (_, value) => envelope::read(&value, tools),
        }
    }

    /// The markup is there, but it is no call that can be made.
    fn give_up(&mut self, opener: &'static str, out: &mut Vec<Found>) -> bool {
        self.unread = true;
        self.held.insert_str(0, opener);
        self.flush(out);
        self.go(Mode::Prose)
    }

    fn xml(&mut self, tools: &Tools, out: &mut Vec<Found>) -> bool {
        let mark = "</function>";
        let Mode::Xml { searched, attempts } = &mut self.mode else { return false };
        let mut from = searched.saturating_sub(mark.len());
        while !self.held.is_char_boundary(from) {
            from = from.saturating_sub(1);
        }
        *searched = self.held.len();
        let is_closed = self.held.get(from..).is_some_and(|new| new.contains(mark));
        if !is_closed {
            return false;
        }
        *attempts = attempts.saturating_add(1);
        let is_last = *attempts > ATTEMPTS;
        match envelope::read_xml(&self.held, tools) {
            Xml::Call(call, length) => {
                out.push(Found::Call(call));
                self.held = self.held.split_off(length);
                self.go(Mode::After { may_repeat: false })
            }
            Xml::Open if !is_last => false,
            Xml::Open | Xml::No => self.give_up("", out),
        }
    }

    fn python(&mut self, tools: &Tools, out: &mut Vec<Found>) -> bool {
        let Mode::Python { scanned, depth, quote, escaped } = &mut self.mode else { return false };
        let rest = self.held.get(*scanned..).unwrap_or_default();
        let mut end = None;
        for (at, c) in rest.char_indices() {
            match *quote {
                Some(_) if *escaped => *escaped = false,
                Some(_) if c == '\\' => *escaped = true,
                Some(open) if c == open => *quote = None,
                None if matches!(c, '"' | '\'') => *quote = Some(c),
                None if matches!(c, '(' | '[' | '{') => *depth = depth.saturating_add(1),
                None if matches!(c, ')' | ']' | '}') => {
                    *depth = depth.saturating_sub(1);
                    if *depth == 0 {
                        end = Some(scanned.saturating_add(at).saturating_add(1));
                        break;
                    }
                }
                Some(_) | None => {}
            }
        }
        *scanned = self.held.len();
        let Some(end) = end else { return false };
        let list = self.held.get(..end).unwrap_or_default();
        match envelope::read_pythonic(list, tools) {
            Some(calls) => {
                out.extend(calls.into_iter().map(Found::Call));
                self.held = self.held.split_off(end);
                self.go(Mode::After { may_repeat: false })
            }
            None => self.go(Mode::Prose),
        }
    }

    fn whole(&mut self, tools: &Tools, out: &mut Vec<Found>) -> bool {
        let Mode::Whole(whole) = &mut self.mode else { return false };
        if !whole.advance(&self.held, tools) {
            return self.go(Mode::Prose);
        }
        let Some(end) = whole.closed_at(&self.held) else { return false };
        let Some(calls) = whole.calls(&self.held, tools) else { return self.go(Mode::Prose) };
        out.extend(calls.into_iter().map(Found::Call));
        self.held = self.held.split_off(end);
        self.go(Mode::After { may_repeat: false })
    }

    fn after(&mut self, may_repeat: bool) -> bool {
        let rest = self.held.trim_start();
        if rest.is_empty() {
            self.held.clear();
            return false;
        }
        let rest = rest.strip_prefix([',', ';']).unwrap_or(rest);
        if let Some(closer) = CLOSERS.iter().find(|closer| rest.starts_with(**closer)) {
            self.held = rest.get(closer.len()..).unwrap_or_default().to_owned();
            return true;
        }
        if let Some(opener) = INNER.iter().find(|opener| rest.starts_with(**opener)) {
            self.held = rest.get(opener.len()..).unwrap_or_default().to_owned();
            return self.go(Mode::Head { opener });
        }
        if CLOSERS.iter().chain(&INNER).any(|mark| mark.starts_with(rest)) {
            return false;
        }
        self.held = rest.to_owned();
        if may_repeat && self.held.starts_with('{') {
            return self.go(Mode::Head { opener: "<tool_call>" });
        }
        self.go(Mode::Prose)
    }
}

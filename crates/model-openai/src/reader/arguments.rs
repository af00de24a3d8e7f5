//! The arguments of one call, assembled from fragments that may be deltas, resends or noise.

use std::mem;

use serde_json::{Map, Value};

use super::json_scan::{Run, Scanner};
use super::lenient;

/// Bytes of a broken text that are kept.
pub(crate) const RAW_KEPT: usize = 4096;
/// Arguments beyond this are not assembled.
const MOST: usize = 32 * 1024 * 1024;

/// What the fragments so far are.
#[derive(Clone, Debug, PartialEq)]
enum State {
    /// Not complete.
    Open,
    /// `{}`: real, or a seed that the object replaces. Only the end tells.
    Empty,
    /// Complete.
    Ready(Map<String, Value>),
    /// Complete as far as Python's quotes can tell; trusted at a clean end.
    Late(Map<String, Value>),
    /// Will never be arguments.
    Broken(String),
}

/// A complete object after the arguments.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Leftover {
    /// Stands directly behind them: a second call that was merged into this one.
    Again(Map<String, Value>),
    /// Stands behind something else, or is not complete.
    Stray(String),
}

/// What the arguments came to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Settled {
    /// They can be used.
    Object(Map<String, Value>),
    /// They cannot, and why.
    Broken(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lead {
    Before,
    Fence,
    In,
}

/// The assembly.
#[derive(Clone, Debug)]
pub(crate) struct Arguments {
    text: String,
    /// Where the value begins in `text`, behind blanks and a fence.
    start: usize,
    lead: Lead,
    scan: Scanner,
    state: State,
    tail: Tail,
    /// Where the last fragment begins, as long as each repeated the one before it and went on.
    repeats_from: Option<usize>,
}

impl Arguments {
    pub(crate) fn new() -> Self {
        Self {
            text: String::new(),
            start: 0,
            lead: Lead::Before,
            scan: Scanner::new(),
            state: State::Open,
            tail: Tail::default(),
            repeats_from: Some(0),
        }
    }

    /// Nothing but blanks has come.
    pub(crate) fn is_blank(&self) -> bool {
        self.state == State::Open && self.text.trim().is_empty()
    }

    /// The object is complete and more than `{}`.
    pub(crate) fn is_complete(&self) -> bool {
        matches!(self.state, State::Ready(_) | State::Late(_))
    }

    /// More could still belong to the object.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.state, State::Open | State::Empty)
    }

    /// The arguments, when they can be used before the reply ends.
    pub(crate) fn ready(&self) -> Option<&Map<String, Value>> {
        match &self.state {
            State::Ready(map) => Some(map),
            State::Open | State::Empty | State::Late(_) | State::Broken(_) => None,
        }
    }

    /// The text as it came, cut to what is worth keeping.
    pub(crate) fn raw(&self) -> String {
        cut(&self.text)
    }

    /// Adds a fragment; answers the further objects it completes.
    pub(crate) fn push(&mut self, fragment: &str) -> Vec<Leftover> {
        let mut leftovers = Vec::new();
        let mut rest = fragment;
        while !rest.is_empty() {
            rest = match &self.state {
                State::Open => self.feed(rest),
                State::Empty => self.after_empty(rest),
                State::Ready(map) | State::Late(map) => {
                    self.tail.push(rest, map, &mut leftovers);
                    ""
                }
                State::Broken(_) => {
                    if self.text.len() < RAW_KEPT {
                        self.text.push_str(rest);
                    }
                    ""
                }
            };
        }
        leftovers
    }

    fn after_empty<'a>(&mut self, fragment: &'a str) -> &'a str {
        if fragment.chars().all(is_noise) {
            return "";
        }
        let rest = fragment.trim_start_matches(|c| c != '`' && is_noise(c));
        if opens_object(rest) {
            *self = Self::new();
            return self.feed(rest);
        }
        self.text.push_str(fragment);
        self.state = State::Broken("the arguments go on after their end".to_owned());
        ""
    }

    /// Appends; answers what stands behind the end of the value.
    fn feed<'a>(&mut self, fragment: &'a str) -> &'a str {
        let before = self.text.len();
        if before.saturating_add(fragment.len()) > MOST {
            self.state = State::Broken(format!("the arguments are longer than {MOST} bytes"));
            return "";
        }
        let last = self.repeats_from.and_then(|start| self.text.get(start..));
        let repeats = last.is_some_and(|last| fragment.starts_with(last));
        self.repeats_from = repeats.then_some(before);
        self.text.push_str(fragment);
        match self.advance(before) {
            Run::Open => "",
            Run::Done(end) => {
                let rest = fragment.get(end.saturating_sub(before)..).unwrap_or_default();
                self.text.truncate(end);
                self.close();
                rest
            }
            Run::Bad => {
                self.replace_or_break(before, fragment);
                ""
            }
        }
    }

    /// A fragment that does not continue the text but begins one replaces it: the provider sends
    /// everything so far each time, or all of it again at the end.
    fn replace_or_break(&mut self, before: usize, fragment: &str) {
        if before > 0 && opens_object(fragment) {
            let mut fresh = Self::new();
            fresh.push(fragment);
            if !matches!(fresh.state, State::Broken(_)) {
                *self = fresh;
                return;
            }
        }
        let value = self.text.get(self.start..).unwrap_or_default();
        let problem = match lenient::parse(value) {
            Err(problem) => problem.to_string(),
            Ok(_) => "the arguments are not a JSON object".to_owned(),
        };
        self.state = State::Broken(problem);
    }

    /// Scans the text from `from` on; the end is an offset in the text.
    fn advance(&mut self, from: usize) -> Run {
        let mut at = from;
        while self.lead != Lead::In {
            let Some(c) = self.text.get(at..).and_then(|rest| rest.chars().next()) else {
                return Run::Open;
            };
            match (self.lead, c) {
                (_, '{' | '[' | '"') => self.begin(at),
                (Lead::Fence, '\n') => self.lead = Lead::Before,
                (Lead::Fence, _) => {}
                (_, '`') => self.lead = Lead::Fence,
                (_, c) if c.is_whitespace() || c == '\u{feff}' => {}
                (_, _) => self.begin(at),
            }
            if self.lead != Lead::In {
                at += c.len_utf8();
            }
        }
        match self.scan.run(self.text.as_bytes().get(at..).unwrap_or_default()) {
            Run::Done(length) => Run::Done(at + length),
            other @ (Run::Open | Run::Bad) => other,
        }
    }

    fn begin(&mut self, at: usize) {
        self.lead = Lead::In;
        self.start = at;
    }

    fn close(&mut self) {
        let value = self.text.get(self.start..).unwrap_or_default();
        self.state = match read_object(value) {
            Ok(map) if map.is_empty() => State::Empty,
            Ok(map) if self.scan.is_python() => State::Late(map),
            Ok(map) => State::Ready(map),
            Err(problem) => State::Broken(problem),
        };
    }

    /// The reply has ended well: what the arguments are in the end.
    pub(crate) fn settle(&mut self) -> Settled {
        match mem::replace(&mut self.state, State::Empty) {
            State::Empty => Settled::Object(Map::new()),
            State::Ready(map) | State::Late(map) => Settled::Object(map),
            State::Broken(problem) => Settled::Broken(problem),
            State::Open => self.settle_open(),
        }
    }

    fn settle_open(&self) -> Settled {
        let value = self.text.get(self.start..).unwrap_or_default().trim();
        if value.is_empty() {
            return Settled::Object(Map::new());
        }
        // Each fragment repeated the text so far, and it happened to read like nesting.
        let repeated = self.repeats_from.filter(|start| *start > 0);
        if let Some(Ok(map)) = repeated.and_then(|start| self.text.get(start..)).map(read_object) {
            return Settled::Object(map);
        }
        match lenient::parse(value) {
            Ok(Value::Null) => Settled::Object(Map::new()),
            Ok(_) => Settled::Broken(NOT_AN_OBJECT.to_owned()),
            Err(_) => Settled::Broken("the arguments are incomplete".to_owned()),
        }
    }

    /// An object that began behind the arguments and never ended.
    pub(crate) fn open_leftover(&mut self) -> Option<Leftover> {
        let text = self.tail.take_open()?;
        let value = self.text.get(self.start..).unwrap_or_default();
        (!value.starts_with(&text)).then(|| Leftover::Stray(cut(&text)))
    }
}

const NOT_AN_OBJECT: &str = "the arguments must be a JSON object";

/// Reads arguments: an object, an object written as a string, or null for none.
pub(crate) fn read_object(text: &str) -> Result<Map<String, Value>, String> {
    match lenient::parse(text).map_err(|error| error.to_string())? {
        Value::Object(map) => Ok(map),
        Value::Null => Ok(Map::new()),
        Value::String(inner) if inner.trim().is_empty() => Ok(Map::new()),
        Value::String(inner) => match lenient::parse(&inner) {
            Ok(Value::Object(map)) => Ok(map),
            Ok(Value::Null) => Ok(Map::new()),
            Ok(_) | Err(_) => Err(NOT_AN_OBJECT.to_owned()),
        },
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => Err(NOT_AN_OBJECT.to_owned()),
    }
}

/// The head of a text, at most [`RAW_KEPT`] bytes.
pub(crate) fn cut(text: &str) -> String {
    let mut end = text.len().min(RAW_KEPT);
    while !text.is_char_boundary(end) {
        end = end.saturating_sub(1);
    }
    text.get(..end).unwrap_or_default().to_owned()
}

/// Whether a fragment starts arguments of its own.
pub(crate) fn opens_object(fragment: &str) -> bool {
    let fragment = fragment.trim_start();
    fragment.starts_with('{') || fragment.starts_with("\"{") || fragment.starts_with("```")
}

fn is_noise(c: char) -> bool {
    c.is_whitespace() || matches!(c, '}' | ']' | ',' | ';' | '`')
}

/// What follows complete arguments.
#[derive(Clone, Debug, Default)]
struct Tail {
    text: String,
    scan: Option<Scanner>,
    junk: bool,
}

impl Tail {
    fn push(&mut self, fragment: &str, first: &Map<String, Value>, out: &mut Vec<Leftover>) {
        let mut rest = fragment;
        while !rest.is_empty() {
            rest = match &mut self.scan {
                Some(scan) => match scan.run(rest.as_bytes()) {
                    Run::Open => {
                        self.keep(rest);
                        ""
                    }
                    Run::Bad => {
                        self.reset(true);
                        ""
                    }
                    Run::Done(end) => {
                        let (own, behind) = rest.split_at_checked(end).unwrap_or((rest, ""));
                        self.keep(own);
                        out.extend(self.close(first));
                        behind
                    }
                },
                None => self.skip(rest),
            };
        }
    }

    fn skip<'a>(&mut self, text: &'a str) -> &'a str {
        let start = text.find('{').unwrap_or(text.len());
        let (skipped, rest) = text.split_at_checked(start).unwrap_or((text, ""));
        self.junk |= !skipped.chars().all(is_noise);
        if !rest.is_empty() {
            self.scan = Some(Scanner::new());
        }
        rest
    }

    fn keep(&mut self, text: &str) {
        if self.text.len() < MOST {
            self.text.push_str(text);
        }
    }

    fn close(&mut self, first: &Map<String, Value>) -> Option<Leftover> {
        let junk = self.junk;
        let text = self.reset(false);
        match read_object(&text) {
            Ok(map) if map.is_empty() || map == *first => None,
            Ok(map) if !junk => Some(Leftover::Again(map)),
            Ok(_) | Err(_) => Some(Leftover::Stray(cut(&text))),
        }
    }

    fn reset(&mut self, junk: bool) -> String {
        self.scan = None;
        self.junk |= junk;
        mem::take(&mut self.text)
    }

    fn take_open(&mut self) -> Option<String> {
        self.scan.take()?;
        Some(mem::take(&mut self.text))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn settled(fragments: &[&str]) -> Settled {
        let mut arguments = Arguments::new();
        for fragment in fragments {
            arguments.push(fragment);
        }
        arguments.settle()
    }

    fn object(value: Value) -> Settled {
        let Value::Object(map) = value else { panic!("not an object") };
        Settled::Object(map)
    }

    #[test]
    fn deltas_resends_and_seeds_come_to_the_same_object() {
        let whole = json!({"file": "a b", "n": 1});
        let cases: [&[&str]; 11] = [
            &[r#"{"file":"#, r#"{"file":"a b","n":1}"#],
            &[r#"{"file":"#, r#""a b","n":1}"#],
            &[r#"{"fi"#, r#"{"file":"a"#, r#"{"file":"a b","n":1}"#],
            &[r#"{"file":"a"#, r#"{"file":"a b","n":1}"#],
            &["{}", r#"{"file":"a b","n":1}"#],
            &["null", r#"{"file":"a b","n":1}"#],
            &["{}{", r#""file":"a b","n":1}"#],
            &["```json\n", r#"{"file":"a b","n":1}"#, "\n```"],
            &[r#""{\"file\":\"a b\","#, r#"\"n\":1}""#],
            &["  \n", r#"{"file":"a b","n":1}"#, "}", "</end>", "{}"],
            &[r#"{"file":"a b","n":1}"#, r#"{"file":"a b","n":1}"#],
        ];
        for fragments in cases {
            assert_eq!(settled(fragments), object(whole.clone()), "{fragments:?}");
        }
    }

    #[test]
    fn a_delta_that_looks_like_a_resend_stays_a_delta() {
        let fragments = [r#"{"text":"see "#, r#"{\"text\":\"see "#, r#"\"}"}"#];
        assert_eq!(settled(&fragments), object(json!({"text": "see {\"text\":\"see \"}"})));
    }

    #[test]
    fn empty_forms_mean_no_arguments_and_only_at_the_end() {
        let cases: [&[&str]; 7] =
            [&[], &[""], &["  "], &["null"], &["{}"], &["{ }", "{}"], &["\"{}\""]];
        for fragments in cases {
            let mut arguments = Arguments::new();
            for fragment in fragments {
                arguments.push(fragment);
            }
            assert_eq!(arguments.ready(), None, "{fragments:?}");
            assert_eq!(arguments.settle(), Settled::Object(Map::new()), "{fragments:?}");
        }
    }

    #[test]
    fn python_is_trusted_only_at_the_end() {
        let mut arguments = Arguments::new();
        arguments.push("{'a': True}");
        assert_eq!(arguments.ready(), None);
        assert_eq!(arguments.settle(), object(json!({"a": true})));
    }

    #[test]
    fn what_is_cut_or_no_object_is_named_and_never_repaired() {
        let incomplete = "the arguments are incomplete";
        let cases: [(&[&str], &str); 5] = [
            (&[r#"{"a":"x"#], incomplete),
            (&[r#"{"a":"x""#], incomplete),
            (&["[1]"], NOT_AN_OBJECT),
            (&["7"], NOT_AN_OBJECT),
            (&[r#"{"a": @x, "b": "#, r#"{"c":1}"#], "not valid JSON at character 6"),
        ];
        for (fragments, problem) in cases {
            assert_eq!(settled(fragments), Settled::Broken(problem.to_owned()), "{fragments:?}");
        }
    }

    #[test]
    fn a_second_object_is_never_lost() {
        let mut arguments = Arguments::new();
        arguments.push(r#"{"a":1}"#);
        let again = arguments.push(r#" {"a":2}"#);
        let Settled::Object(second) = object(json!({"a": 2})) else { panic!("not an object") };
        assert_eq!(again, [Leftover::Again(second)]);
        assert_eq!(arguments.push("<x>{\"a\":3}"), [Leftover::Stray("{\"a\":3}".to_owned())]);
        arguments.push("{\"b\"");
        assert_eq!(arguments.open_leftover(), Some(Leftover::Stray("{\"b\"".to_owned())));
    }
}

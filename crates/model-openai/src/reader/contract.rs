//! The reply of the `contract` protocol: one object with `reasoning` and `tool_calls`, read while
//! it arrives. Whatever stands around the object is skipped; each call goes out as its name and its
//! arguments close.

use serde_json::{Map, Value};

use super::arguments::read_object;
use super::envelope::Named;
use super::json_scan::{Bracket, Scanner, Step};
use super::lenient::{self, Unescape, settle_surrogates};
use super::members::Members;

/// What the object says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Said {
    /// A piece of the reasoning.
    Reasoning(String),
    /// The call at this place of the object is complete.
    Call { place: usize, name: String, arguments: Map<String, Value> },
    /// The call at this place cannot run.
    Broken { place: usize, name: String, raw: String, problem: String },
}

/// How the reply stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// No object has begun; everything so far is prose.
    Prose,
    /// The object is open.
    Open,
    /// The object has closed.
    Closed,
    /// The object has turned out not to be one.
    Violated,
}

/// The reading of one reply.
#[derive(Debug, Default)]
pub(crate) struct Contract {
    object: Option<Box<Object>>,
    prose: String,
    first: Option<Summary>,
    is_violated: bool,
    confidence: Option<f64>,
    /// Calls seen in objects that have closed.
    places: usize,
}

/// What the first object said, to tell a resend from a second one.
#[derive(Clone, Debug, Default)]
struct Summary {
    calls: Vec<Named>,
    reasoning: String,
}

impl Contract {
    /// Takes a piece of the text.
    pub(crate) fn push(&mut self, text: &str, out: &mut Vec<Said>) {
        for c in text.chars() {
            if self.is_violated {
                return;
            }
            self.take(c, out);
        }
        if let Some(object) = &mut self.object {
            object.flush_reasoning(out);
        }
    }

    /// How the reply stands.
    pub(crate) fn standing(&self) -> Standing {
        match &self.object {
            _ if self.is_violated => Standing::Violated,
            _ if self.first.is_some() => Standing::Closed,
            Some(object) if object.is_committed => Standing::Open,
            Some(_) | None => Standing::Prose,
        }
    }

    /// Whether the first visible character begins neither an object nor a fence.
    pub(crate) fn begins_like_prose(&self) -> bool {
        let first = self.prose.chars().find(|c| !c.is_whitespace());
        self.standing() == Standing::Prose && first.is_some_and(|c| c != '`' && c != '[')
    }

    /// Everything so far, when no object was in it.
    pub(crate) fn prose(&self) -> String {
        let open = self.object.as_ref().map_or("", |object| object.text.as_str());
        format!("{}{open}", self.prose)
    }

    /// The answer: what the object says, when it calls nothing.
    pub(crate) fn answer(&self) -> Option<String> {
        let first = self.first.as_ref().filter(|_| self.places == 0)?;
        Some(settle_surrogates(&first.reasoning)).filter(|words| !words.trim().is_empty())
    }

    /// How sure the model said it is.
    pub(crate) fn confidence(&self) -> Option<f64> {
        self.confidence
    }

    /// The text has ended inside the object: the call that was open in it.
    pub(crate) fn cut(&mut self, out: &mut Vec<Said>) {
        let is_first = self.first.is_none();
        if let Some(mut object) = self.object.take().filter(|_| is_first) {
            object.flush_reasoning(out);
            object.cut(out);
        }
    }

    fn take(&mut self, c: char, out: &mut Vec<Said>) {
        match &mut self.object {
            Some(object) => match object.take(c, out) {
                Progress::Goes => {}
                Progress::Closed => self.close(out),
                Progress::Bad => self.give_up(c, out),
            },
            None if c == '{' => {
                let resend_of = self.first.clone();
                self.object = Some(Box::new(Object::new(self.places, resend_of)));
            }
            None => self.keep_prose(c),
        }
    }

    fn keep_prose(&mut self, c: char) {
        if self.first.is_none() {
            self.prose.push(c);
        }
    }

    fn close(&mut self, out: &mut Vec<Said>) {
        let Some(mut object) = self.object.take() else { return };
        if !object.is_committed {
            self.prose.push_str(&object.text);
            return;
        }
        object.close(out);
        self.places = object.next_place;
        self.confidence = object.confidence.or(self.confidence);
        if self.first.is_none() {
            self.first = Some(Summary { calls: object.sent, reasoning: object.reasoning.whole });
        }
    }

    /// What began like an object was none. Before one of its two keys it was prose; after, the
    /// contract is broken, unless the reply already had its object.
    fn give_up(&mut self, c: char, out: &mut Vec<Said>) {
        let Some(mut object) = self.object.take() else { return };
        if object.is_committed && self.first.is_none() {
            object.flush_reasoning(out);
            object.cut(out);
            self.is_violated = true;
            return;
        }
        if self.first.is_none() {
            self.prose.push_str(&object.text);
        }
        self.take(c, out);
    }
}

enum Progress {
    Goes,
    Closed,
    Bad,
}

/// A string value that is handed on while it arrives.
#[derive(Debug, Default)]
struct Reasoning {
    decoder: Unescape,
    /// The raw part that was not handed on yet begins here; absent outside the string.
    from: Option<usize>,
    whole: String,
}

/// One object, contract or not.
#[derive(Debug)]
struct Object {
    text: String,
    scan: Scanner,
    outer: Members,
    is_committed: bool,
    reasoning: Reasoning,
    confidence: Option<f64>,
    /// The depth inside the elements of `tool_calls`, while that value is open.
    element_level: Option<u8>,
    element: Option<Element>,
    next_place: usize,
    /// Calls that wait for the close of the whole, because Python's quotes may have lied.
    late: Vec<Said>,
    sent: Vec<Named>,
    /// For an object behind the first: what the first said.
    resend_of: Option<Summary>,
    nth: usize,
}

/// One element of `tool_calls`.
#[derive(Debug)]
struct Element {
    place: usize,
    start: usize,
    members: Members,
    name: Option<String>,
    arguments: Option<Result<Map<String, Value>, String>>,
    is_sent: bool,
}

impl Object {
    fn new(places: usize, resend_of: Option<Summary>) -> Self {
        let mut scan = Scanner::new();
        scan.step(b'{');
        Self {
            text: "{".to_owned(),
            scan,
            outer: Members::new(1),
            is_committed: false,
            reasoning: Reasoning::default(),
            confidence: None,
            element_level: None,
            element: None,
            next_place: places,
            late: Vec::new(),
            sent: Vec::new(),
            resend_of,
            nth: 0,
        }
    }

    fn take(&mut self, c: char, out: &mut Vec<Said>) -> Progress {
        let at = self.text.len();
        // Outside strings only ASCII has a meaning, inside none of it is structure.
        let step = self.scan.step(u8::try_from(c).ok().filter(u8::is_ascii).unwrap_or(0x80));
        if step == Step::Bad {
            return Progress::Bad;
        }
        self.text.push(c);
        if step != Step::Quiet {
            self.follow(step, at, out);
        }
        if self.scan.is_done() { Progress::Closed } else { Progress::Goes }
    }

    fn follow(&mut self, step: Step, at: usize, out: &mut Vec<Said>) {
        let depth = self.scan.depth();
        self.follow_elements(step, depth, at, out);
        let ended = self.outer.follow(step, depth, at, &self.text);
        match step {
            Step::KeyClose if depth == 1 => {
                self.is_committed |= matches!(self.outer.key(), "reasoning" | "tool_calls");
            }
            Step::StringOpen if depth == 1 && self.outer.key() == "reasoning" => {
                self.reasoning.from = Some(at.saturating_add(1));
            }
            Step::Open(bracket) if depth == 2 && self.outer.key() == "tool_calls" => {
                let in_array = bracket == Bracket::Array;
                self.element_level = Some(if in_array { 3 } else { 2 });
                if !in_array {
                    self.open_element(at, 2);
                }
            }
            Step::Quiet
            | Step::Open(_)
            | Step::Close
            | Step::KeyOpen
            | Step::KeyClose
            | Step::StringOpen
            | Step::StringClose
            | Step::WordOpen
            | Step::Comma
            | Step::Bad => {}
        }
        if let Some((start, end)) = ended {
            self.end_member(start, end, out);
        }
    }

    fn follow_elements(&mut self, step: Step, depth: u8, at: usize, out: &mut Vec<Said>) {
        let Some(level) = self.element_level else { return };
        if let Some(element) = &mut self.element {
            if let Some((start, end)) = element.members.follow(step, depth, at, &self.text) {
                let raw = self.text.get(start..end).unwrap_or_default();
                element.member(raw.trim());
                self.send_element(out, false);
            }
            if step == Step::Close && depth.saturating_add(1) == level {
                self.send_element(out, true);
                self.element = None;
            }
        } else if step == Step::Open(Bracket::Object) && depth == level {
            self.open_element(at, level);
        }
    }

    fn open_element(&mut self, start: usize, level: u8) {
        let place = self.next_place;
        self.next_place = place.saturating_add(1);
        self.element = Some(Element {
            place,
            start,
            members: Members::new(level),
            name: None,
            arguments: None,
            is_sent: false,
        });
    }

    /// Sends the element out when it is complete enough; at its end it always is.
    fn send_element(&mut self, out: &mut Vec<Said>, at_end: bool) {
        let Some(element) = &mut self.element else { return };
        let is_complete = element.name.is_some() && element.arguments.is_some();
        if element.is_sent || !(is_complete || at_end) {
            return;
        }
        element.is_sent = true;
        let raw = self.text.get(element.start..).unwrap_or_default();
        let said = element.said(raw);
        self.hand_on(said, out);
    }

    fn hand_on(&mut self, said: Said, out: &mut Vec<Said>) {
        if let Said::Call { name, arguments, .. } = &said {
            let nth = self.nth;
            self.nth = nth.saturating_add(1);
            let first = self.resend_of.as_ref().and_then(|first| first.calls.get(nth));
            if first.is_some_and(|(n, a)| n == name && a == arguments) {
                return;
            }
            self.sent.push((name.clone(), arguments.clone()));
        }
        if self.scan.is_python() { self.late.push(said) } else { out.push(said) }
    }

    fn end_member(&mut self, start: usize, end: usize, out: &mut Vec<Said>) {
        let raw = self.text.get(start..end).unwrap_or_default().trim().to_owned();
        match self.outer.key() {
            "reasoning" => self.end_reasoning(&raw, end, out),
            "tool_calls" => {
                self.element_level = None;
                self.calls_in_a_string(&raw, out);
            }
            "confidence" => {
                self.confidence = raw.parse().ok().filter(|sure| (0.0..=1.0).contains(sure));
            }
            _ => {}
        }
    }

    fn end_reasoning(&mut self, raw: &str, end: usize, out: &mut Vec<Said>) {
        if self.reasoning.from.is_some() {
            self.flush_to(end.saturating_sub(1), out);
            self.reasoning.from = None;
            let mut rest = String::new();
            std::mem::take(&mut self.reasoning.decoder).finish(&mut rest);
            self.reason(&rest, out);
            self.say_late_reasoning(out);
        } else if let Ok(value) = lenient::parse(raw) {
            self.reason(&flatten(&value), out);
        }
    }

    /// `tool_calls` may be an array that was written as a string.
    fn calls_in_a_string(&mut self, raw: &str, out: &mut Vec<Said>) {
        let Ok(Value::String(inner)) = lenient::parse(raw) else { return };
        let Ok(Value::Array(items)) = lenient::parse(&inner) else { return };
        for item in items.iter().filter(|item| item.is_object()) {
            self.open_element(0, 0);
            if let (Some(element), Some(map)) = (&mut self.element, item.as_object()) {
                for (key, value) in map {
                    element.members.set_key(key);
                    element.member(&value.to_string());
                }
            }
            self.send_element(out, true);
            self.element = None;
        }
    }

    fn flush_reasoning(&mut self, out: &mut Vec<Said>) {
        self.flush_to(self.text.len(), out);
    }

    fn flush_to(&mut self, end: usize, out: &mut Vec<Said>) {
        let Some(from) = self.reasoning.from else { return };
        let raw = self.text.get(from..end).unwrap_or_default();
        let mut decoded = String::new();
        self.reasoning.decoder.push(raw, &mut decoded);
        self.reasoning.from = Some(end);
        self.reason(&decoded, out);
    }

    fn reason(&mut self, text: &str, out: &mut Vec<Said>) {
        if text.is_empty() {
            return;
        }
        self.reasoning.whole.push_str(text);
        // The reasoning of a further object is held until it is known not to be a resend.
        if self.resend_of.is_none() {
            out.push(Said::Reasoning(settle_surrogates(text)));
        }
    }

    fn say_late_reasoning(&mut self, out: &mut Vec<Said>) {
        let Some(first) = &self.resend_of else { return };
        if first.reasoning != self.reasoning.whole {
            let text = format!("\n{}", settle_surrogates(&self.reasoning.whole));
            out.push(Said::Reasoning(text));
        }
    }

    fn close(&mut self, out: &mut Vec<Said>) {
        out.append(&mut self.late);
    }

    fn cut(&mut self, out: &mut Vec<Said>) {
        let late = std::mem::take(&mut self.late);
        out.extend(late.into_iter().map(broken));
        let Some(element) = self.element.take().filter(|element| !element.is_sent) else { return };
        let raw = self.text.get(element.start..).unwrap_or_default();
        let name = element.name.unwrap_or_default();
        let (place, raw) = (element.place, super::arguments::cut(raw));
        out.push(Said::Broken { place, name, raw, problem: CUT.to_owned() });
    }
}

const CUT: &str = "the call was cut off before it was complete";

fn broken(said: Said) -> Said {
    match said {
        Said::Call { place, name, arguments } => {
            let raw = super::arguments::cut(&Value::Object(arguments).to_string());
            Said::Broken { place, name, raw, problem: CUT.to_owned() }
        }
        other @ (Said::Reasoning(_) | Said::Broken { .. }) => other,
    }
}

/// Texts inside a value that should have been a text.
fn flatten(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(flatten).collect::<Vec<_>>().join("\n"),
        Value::Object(map) => map.values().map(flatten).collect::<Vec<_>>().join("\n"),
        Value::Null => String::new(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

impl Element {
    /// Takes the member that has just ended.
    fn member(&mut self, raw: &str) {
        match self.members.key() {
            "name" | "tool" | "tool_name" => self.take_name(raw),
            "arguments" | "args" | "parameters" | "input" => {
                self.arguments = Some(read_object(raw));
            }
            "function" => match lenient::parse(raw) {
                Ok(Value::Object(function)) => self.take_function(&function),
                Ok(_) | Err(_) => self.take_name(raw),
            },
            _ => {}
        }
    }

    fn take_name(&mut self, raw: &str) {
        if let Ok(Value::String(name)) = lenient::parse(raw)
            && !name.trim().is_empty()
        {
            self.name = Some(name);
        }
    }

    fn take_function(&mut self, function: &Map<String, Value>) {
        if let Some(name) = function.get("name").and_then(Value::as_str) {
            self.name = Some(name.to_owned());
        }
        let keys = ["arguments", "parameters", "args", "input"];
        if let Some(arguments) = keys.iter().find_map(|key| function.get(*key)) {
            self.arguments = Some(read_object(&arguments.to_string()));
        }
    }

    fn said(&mut self, raw: &str) -> Said {
        let place = self.place;
        let raw = || super::arguments::cut(raw);
        match (self.name.take(), self.arguments.take()) {
            (Some(name), Some(Ok(arguments))) => Said::Call { place, name, arguments },
            (Some(name), None) => Said::Call { place, name, arguments: Map::new() },
            (Some(name), Some(Err(problem))) => Said::Broken { place, name, raw: raw(), problem },
            (None, _) => {
                let problem = "the call names no tool".to_owned();
                Said::Broken { place, name: String::new(), raw: raw(), problem }
            }
        }
    }
}

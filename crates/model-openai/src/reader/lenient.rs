//! Reads a complete JSON text with the repairs that lose and invent nothing.

use serde_json::{Map, Number, Value};

use super::json_scan::MAX_DEPTH;

/// Code points that stand for lone surrogates while a text is read; see [`join_surrogates`].
const LONE: u32 = 0x0010_F800;

/// Why a text could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error("not valid JSON at character {0}")]
    At(usize),
    #[error("nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    #[error("the integer {0} does not fit in 64 bits; send it as a string")]
    BigInteger(String),
}

/// Reads the value that the whole text is.
pub(crate) fn parse(text: &str) -> Result<Value, Unreadable> {
    if let Ok(value) = serde_json::from_str(text)
        && !may_hold_big_integers(text)
    {
        return shallow(value, 0);
    }
    let mut parser = Parser { rest: text, total: text.chars().count() };
    let value = parser.value(0)?;
    parser.skip_blanks();
    if parser.rest.is_empty() { Ok(value) } else { Err(parser.wrong()) }
}

/// Reads the value that the text begins with; answers what follows it.
pub(crate) fn parse_prefix(text: &str) -> Result<(Value, &str), Unreadable> {
    let mut parser = Parser { rest: text, total: text.chars().count() };
    let value = parser.value(0)?;
    Ok((value, parser.rest))
}

/// `serde_json` turns an integer beyond 64 bits into a float without a word.
fn may_hold_big_integers(text: &str) -> bool {
    let mut digits = 0_u32;
    text.bytes().any(|byte| {
        digits = if byte.is_ascii_digit() { digits.saturating_add(1) } else { 0 };
        digits >= 19
    })
}

fn shallow(value: Value, depth: u8) -> Result<Value, Unreadable> {
    check_depth(&value, depth)?;
    Ok(value)
}

fn check_depth(value: &Value, depth: u8) -> Result<(), Unreadable> {
    if depth > MAX_DEPTH {
        return Err(Unreadable::TooDeep);
    }
    match value {
        Value::Array(items) => items.iter().try_for_each(|item| check_depth(item, depth + 1)),
        Value::Object(map) => map.values().try_for_each(|item| check_depth(item, depth + 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

/// Reads the content of a string without its quotes: escapes decoded, unknown ones kept.
pub(crate) fn unescape(raw: &str) -> String {
    let mut decoder = Unescape::default();
    let mut text = String::with_capacity(raw.len());
    decoder.push(raw, &mut text);
    decoder.finish(&mut text);
    text
}

struct Parser<'a> {
    rest: &'a str,
    total: usize,
}

impl Parser<'_> {
    fn wrong(&self) -> Unreadable {
        Unreadable::At(self.total.saturating_sub(self.rest.chars().count()))
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn eat(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Blanks, comments, and the two characters `\n` where only a blank makes sense.
    fn skip_blanks(&mut self) {
        loop {
            let before = self.rest.len();
            self.rest = self.rest.trim_start_matches(['\u{feff}', ' ', '\t', '\n', '\r']);
            let _ = self.eat("\\n") || self.eat("\\r") || self.eat("\\t");
            if let Some(comment) = self.rest.strip_prefix("//") {
                self.rest = comment.split_once('\n').map_or("", |(_, rest)| rest);
            } else if let Some(comment) = self.rest.strip_prefix("/*") {
                self.rest = comment.split_once("*/").map_or("", |(_, rest)| rest);
            }
            if self.rest.len() == before {
                return;
            }
        }
    }

    fn value(&mut self, depth: u8) -> Result<Value, Unreadable> {
        if depth > MAX_DEPTH {
            return Err(Unreadable::TooDeep);
        }
        self.skip_blanks();
        match self.peek() {
            Some('{') => self.object(depth),
            Some('[') => self.array(depth),
            Some('"' | '\'') => self.string().map(Value::String),
            Some('-' | '0'..='9') => self.number(),
            Some(_) => self.literal(),
            None => Err(self.wrong()),
        }
    }

    fn object(&mut self, depth: u8) -> Result<Value, Unreadable> {
        self.eat("{");
        let mut map = Map::new();
        loop {
            self.skip_blanks();
            if self.eat("}") {
                return Ok(Value::Object(map));
            }
            let key = self.string()?;
            self.skip_blanks();
            if !self.eat(":") {
                return Err(self.wrong());
            }
            let value = self.value(depth + 1)?;
            map.insert(key, value);
            self.separator("}")?;
        }
    }

    fn array(&mut self, depth: u8) -> Result<Value, Unreadable> {
        self.eat("[");
        let mut items = Vec::new();
        loop {
            self.skip_blanks();
            if self.eat("]") {
                return Ok(Value::Array(items));
            }
            items.push(self.value(depth + 1)?);
            self.separator("]")?;
        }
    }

    /// A comma, or nothing when the bracket closes next.
    fn separator(&mut self, close: &str) -> Result<(), Unreadable> {
        self.skip_blanks();
        if self.eat(",") || self.rest.starts_with(close) { Ok(()) } else { Err(self.wrong()) }
    }

    fn string(&mut self) -> Result<String, Unreadable> {
        let Some(quote @ ('"' | '\'')) = self.peek() else { return Err(self.wrong()) };
        let body = self.rest.get(1..).unwrap_or_default();
        let Some(end) = end_of_string(body, quote) else { return Err(self.wrong()) };
        let (raw, rest) = body.split_at(end);
        self.rest = rest.get(1..).unwrap_or_default();
        Ok(unescape(raw))
    }

    fn number(&mut self) -> Result<Value, Unreadable> {
        let is_part = |c: char| matches!(c, '0'..='9' | '.' | 'e' | 'E' | '+' | '-');
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        if word == "-" && rest.starts_with("Infinity") {
            self.rest = rest.get(8..).unwrap_or_default();
            return Ok(Value::Null);
        }
        let Ok(number) = serde_json::from_str::<Number>(word) else { return Err(self.wrong()) };
        let is_integer = !word.contains(['.', 'e', 'E']);
        if is_integer && !number.is_i64() && !number.is_u64() {
            return Err(Unreadable::BigInteger(word.to_owned()));
        }
        self.rest = rest;
        Ok(Value::Number(number))
    }

    /// `NaN` and `Infinity` have no place in JSON and become null, as JavaScript writes them.
    fn literal(&mut self) -> Result<Value, Unreadable> {
        let words = [
            ("true", Value::Bool(true)),
            ("True", Value::Bool(true)),
            ("false", Value::Bool(false)),
            ("False", Value::Bool(false)),
            ("null", Value::Null),
            ("None", Value::Null),
            ("NaN", Value::Null),
            ("Infinity", Value::Null),
        ];
        words
            .into_iter()
            .find_map(|(word, value)| self.eat(word).then_some(value))
            .ok_or_else(|| self.wrong())
    }
}

fn end_of_string(body: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    body.char_indices().find_map(|(at, c)| {
        let ends = !escaped && c == quote;
        escaped = !escaped && c == '\\';
        ends.then_some(at)
    })
}

/// Decodes the escapes of a string that arrives in pieces.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unescape {
    pending: Pending,
    /// A high surrogate that waits for its other half.
    high: Option<u32>,
}

#[derive(Clone, Debug, Default)]
enum Pending {
    #[default]
    Nothing,
    Backslash,
    Unicode {
        digits: String,
    },
}

impl Unescape {
    /// Adds a piece of the raw string and appends what it means.
    pub(crate) fn push(&mut self, raw: &str, out: &mut String) {
        for c in raw.chars() {
            match std::mem::take(&mut self.pending) {
                Pending::Nothing if c == '\\' => self.pending = Pending::Backslash,
                Pending::Nothing => self.plain(c, out),
                Pending::Backslash if c == 'u' => {
                    self.pending = Pending::Unicode { digits: String::new() };
                }
                Pending::Backslash => self.escape(c, out),
                Pending::Unicode { digits } => self.unicode(digits, c, out),
            }
        }
    }

    /// Appends what was left open.
    pub(crate) fn finish(&mut self, out: &mut String) {
        self.flush_high(out);
        match std::mem::take(&mut self.pending) {
            Pending::Nothing => {}
            Pending::Backslash => out.push('\\'),
            Pending::Unicode { digits } => {
                out.push_str("\\u");
                out.push_str(&digits);
            }
        }
    }

    fn plain(&mut self, c: char, out: &mut String) {
        self.flush_high(out);
        out.push(c);
    }

    fn escape(&mut self, c: char, out: &mut String) {
        self.flush_high(out);
        match c {
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            '"' | '\\' | '/' | '\'' => out.push(c),
            other => {
                out.push('\\');
                out.push(other);
            }
        }
    }

    fn unicode(&mut self, mut digits: String, c: char, out: &mut String) {
        if !c.is_ascii_hexdigit() {
            self.flush_high(out);
            out.push_str("\\u");
            out.push_str(&digits);
            if c == '\\' {
                self.pending = Pending::Backslash;
            } else {
                out.push(c);
            }
            return;
        }
        digits.push(c);
        if digits.len() < 4 {
            self.pending = Pending::Unicode { digits };
            return;
        }
        self.unit(u32::from_str_radix(&digits, 16).unwrap_or(0xFFFD), out);
    }

    fn unit(&mut self, unit: u32, out: &mut String) {
        match (self.high.take(), unit) {
            (Some(high), 0xDC00..=0xDFFF) => {
                let joined = 0x1_0000 + ((high - 0xD800) << 10) + (unit - 0xDC00);
                out.push(char::from_u32(joined).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            (left, _) => {
                self.high = left;
                self.flush_high(out);
                match unit {
                    0xD800..=0xDBFF => self.high = Some(unit),
                    0xDC00..=0xDFFF => out.push(lone(unit)),
                    _ => out.push(char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER)),
                }
            }
        }
    }

    fn flush_high(&mut self, out: &mut String) {
        if let Some(high) = self.high.take() {
            out.push(lone(high));
        }
    }
}

fn lone(unit: u32) -> char {
    char::from_u32(LONE + (unit - 0xD800)).unwrap_or(char::REPLACEMENT_CHARACTER)
}

fn unlone(c: char) -> Option<u32> {
    let code = u32::from(c);
    (LONE..LONE + 0x800).contains(&code).then(|| code - LONE + 0xD800)
}

/// Joins the halves of characters that were cut between two pieces of one text; a half that stays
/// alone becomes the replacement character. `carry` keeps a half that may still find its other.
pub(crate) fn join_surrogates(text: &str, carry: &mut Option<u32>) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let unit = unlone(c);
        match (carry.take(), unit) {
            (Some(high), Some(low @ 0xDC00..=0xDFFF)) => {
                let joined = 0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00);
                out.push(char::from_u32(joined).unwrap_or(char::REPLACEMENT_CHARACTER));
                continue;
            }
            (Some(_), _) => out.push(char::REPLACEMENT_CHARACTER),
            (None, _) => {}
        }
        match unit {
            Some(high @ 0xD800..=0xDBFF) => *carry = Some(high),
            Some(_) => out.push(char::REPLACEMENT_CHARACTER),
            None => out.push(c),
        }
    }
    out
}

/// The same for a text that stands alone.
pub(crate) fn settle_surrogates(text: &str) -> String {
    let mut carry = None;
    let mut out = join_surrogates(text, &mut carry);
    if carry.is_some() {
        out.push(char::REPLACEMENT_CHARACTER);
    }
    out
}

/// Whether the text holds stand-ins of lone surrogates.
pub(crate) fn has_lone_surrogates(text: &str) -> bool {
    text.chars().any(|c| unlone(c).is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn repairs_keep_every_value() {
        let cases = [
            ("{\"a\":\"x\n\ty\"}", json!({"a": "x\n\ty"})),
            (r#"{"a":"\d it\'s"}"#, json!({"a": "\\d it's"})),
            ("{\"a\":\"x \\\n y\"}", json!({"a": "x \\\n y"})),
            (r#"{"a":[1,2,],}"#, json!({"a": [1, 2]})),
            (r#"{"a":\n[1]\n}"#, json!({"a": [1]})),
            ("{'a': 'b', 'c': True, 'd': None}", json!({"a": "b", "c": true, "d": null})),
            ("{\"a\":1, // why\n \"b\":2}", json!({"a": 1, "b": 2})),
            (r#"{"a":NaN,"b":-Infinity}"#, json!({"a": null, "b": null})),
            (r#"{"a":"\ud83d\ude00"}"#, json!({"a": "😀"})),
        ];
        for (text, value) in cases {
            assert_eq!(parse(text), Ok(value), "{text}");
        }
    }

    #[test]
    fn integers_stay_exact_or_are_refused() {
        let exact = parse("[9007199254740993,-9223372036854775808,18446744073709551615]");
        assert_eq!(
            exact.unwrap().to_string(),
            "[9007199254740993,-9223372036854775808,18446744073709551615]"
        );
        let big = "123456789012345678901234567890".to_owned();
        assert_eq!(parse(&format!("[{big}]")), Err(Unreadable::BigInteger(big)));
    }

    #[test]
    fn nothing_is_invented_at_a_cut() {
        for text in ["{\"a\":1", "{\"a\":\"x", "[1", "{\"a\"", "{\"a\" 1}", "{} x", ""] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn deep_nesting_is_refused() {
        let deep = format!("{}{}", "[".repeat(120), "]".repeat(120));
        assert_eq!(parse(&deep), Err(Unreadable::TooDeep));
    }

    #[test]
    fn halves_of_a_character_find_each_other_across_pieces() {
        let mut carry = None;
        let first = join_surrogates(&unescape(r"a\ud83d"), &mut carry);
        let second = join_surrogates(&unescape(r"\ude00b"), &mut carry);
        assert_eq!((first + &second, carry), ("a😀b".to_owned(), None));
        assert_eq!(settle_surrogates(&unescape(r"x\ud83dy")), "x\u{fffd}y");
    }
}

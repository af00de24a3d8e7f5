//! Finds where a JSON value ends while it still arrives, in one pass over its bytes.
//!
//! It is as lenient as the lossless repairs of [`super::lenient`] allow: raw control characters and
//! unknown escapes in strings, trailing commas, comments, a literal `\n` between tokens, Python's
//! quotes and words. It never guesses: what is neither JSON nor one of these is [`Step::Bad`].

/// Deepest nesting that is read. A record that carries the value must still fit the depth limit
/// that its readers have.
pub(crate) const MAX_DEPTH: u8 = 100;

/// A bracketed value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bracket {
    /// `{`
    Object,
    /// `[`
    Array,
}

/// What one byte did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing that a reader of the structure needs.
    Quiet,
    /// An object or array began.
    Open(Bracket),
    /// An object or array ended.
    Close,
    /// A member's name began.
    KeyOpen,
    /// A member's name ended.
    KeyClose,
    /// A string value began.
    StringOpen,
    /// A string value ended.
    StringClose,
    /// A number or literal began; it ends at the next comma or closing bracket.
    WordOpen,
    /// A comma between members or elements.
    Comma,
    /// Not JSON.
    Bad,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expect {
    Value,
    ValueOrEnd,
    KeyOrEnd,
    Colon,
    CommaOrEnd,
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lexeme {
    Between,
    Str { quote: u8, is_key: bool, escaped: bool },
    Word { at: WordState },
    Backslash,
    Slash,
    LineComment,
    BlockComment { star: bool },
}

/// Where in a number or literal the scan is: enough to tell a prefix of one from anything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WordState {
    Number,
    Literal { which: &'static str, next: u8 },
}

/// `NaN` and `Infinity` are missing on purpose: JSON has no value for them.
const LITERALS: [(&str, bool); 6] = [
    ("true", false),
    ("false", false),
    ("null", false),
    ("True", true),
    ("False", true),
    ("None", true),
];

/// Progress of one value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scanner {
    expect: Expect,
    lexeme: Lexeme,
    /// One bit per open bracket, 1 for an object.
    stack: u128,
    depth: u8,
    python: bool,
}

impl Scanner {
    pub(crate) fn new() -> Self {
        Self { expect: Expect::Value, lexeme: Lexeme::Between, stack: 0, depth: 0, python: false }
    }

    /// Brackets that are open.
    pub(crate) fn depth(&self) -> u8 {
        self.depth
    }

    /// Whether the value has ended. A bare number or literal never does by itself.
    pub(crate) fn is_done(&self) -> bool {
        self.expect == Expect::Nothing && self.lexeme == Lexeme::Between
    }

    /// Whether Python's quotes or words were seen: then a quote inside a string may have ended it
    /// too early, and only a clean end of the whole makes it trustworthy.
    pub(crate) fn is_python(&self) -> bool {
        self.python
    }

    /// Reads bytes until the value ends, turns bad, or the bytes run out.
    pub(crate) fn run(&mut self, bytes: &[u8]) -> Run {
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            let plain = self.plain_run(bytes.get(at..).unwrap_or_default());
            if plain > 0 {
                #[cfg(test)]
                work::add(plain);
                at += plain;
                continue;
            }
            if self.step(*byte) == Step::Bad {
                return Run::Bad;
            }
            at += 1;
            if self.is_done() {
                return Run::Done(at);
            }
        }
        Run::Open
    }

    /// How many bytes from here are plain characters of an open string.
    fn plain_run(&self, bytes: &[u8]) -> usize {
        match self.lexeme {
            Lexeme::Str { quote, escaped: false, .. } => bytes
                .iter()
                .position(|byte| *byte == quote || *byte == b'\\')
                .unwrap_or(bytes.len()),
            Lexeme::Str { .. }
            | Lexeme::Between
            | Lexeme::Word { .. }
            | Lexeme::Backslash
            | Lexeme::Slash
            | Lexeme::LineComment
            | Lexeme::BlockComment { .. } => 0,
        }
    }

    /// Reads one byte.
    pub(crate) fn step(&mut self, byte: u8) -> Step {
        #[cfg(test)]
        work::add(1);
        match self.lexeme {
            Lexeme::Between => self.between(byte),
            Lexeme::Str { quote, is_key, escaped } => self.in_string(byte, quote, is_key, escaped),
            Lexeme::Word { at } => self.in_word(byte, at),
            Lexeme::Backslash => self.after(b"nrt".contains(&byte), Lexeme::Between),
            Lexeme::Slash if byte == b'*' => self.after(true, Lexeme::BlockComment { star: false }),
            Lexeme::Slash => self.after(byte == b'/', Lexeme::LineComment),
            Lexeme::LineComment => {
                let next = if byte == b'\n' { Lexeme::Between } else { Lexeme::LineComment };
                self.after(true, next)
            }
            Lexeme::BlockComment { star } => {
                let is_end = star && byte == b'/';
                let open = Lexeme::BlockComment { star: byte == b'*' };
                self.after(true, if is_end { Lexeme::Between } else { open })
            }
        }
    }

    fn after(&mut self, is_good: bool, next: Lexeme) -> Step {
        if is_good {
            self.lexeme = next;
            Step::Quiet
        } else {
            Step::Bad
        }
    }

    fn in_string(&mut self, byte: u8, quote: u8, is_key: bool, escaped: bool) -> Step {
        if escaped || byte != quote {
            let escaped = !escaped && byte == b'\\';
            self.lexeme = Lexeme::Str { quote, is_key, escaped };
            return Step::Quiet;
        }
        self.lexeme = Lexeme::Between;
        if is_key {
            self.expect = Expect::Colon;
            Step::KeyClose
        } else {
            self.value_ended();
            Step::StringClose
        }
    }

    fn in_word(&mut self, byte: u8, at: WordState) -> Step {
        if let Some(at) = continue_word(at, byte) {
            self.lexeme = Lexeme::Word { at };
            return Step::Quiet;
        }
        let WordState::Literal { which, next } = at else { return self.end_word(byte) };
        if usize::from(next) == which.len() { self.end_word(byte) } else { Step::Bad }
    }

    fn end_word(&mut self, byte: u8) -> Step {
        self.lexeme = Lexeme::Between;
        self.value_ended();
        self.between(byte)
    }

    fn between(&mut self, byte: u8) -> Step {
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => Step::Quiet,
            b'\\' if self.depth > 0 => self.after(true, Lexeme::Backslash),
            b'/' if self.depth > 0 => self.after(true, Lexeme::Slash),
            _ => self.token(byte),
        }
    }

    fn token(&mut self, byte: u8) -> Step {
        match (self.expect, byte) {
            (Expect::Colon, b':') => {
                self.expect = Expect::Value;
                Step::Quiet
            }
            (Expect::CommaOrEnd, b',') => {
                let next = if self.in_object() { Expect::KeyOrEnd } else { Expect::ValueOrEnd };
                self.expect = next;
                Step::Comma
            }
            (Expect::CommaOrEnd | Expect::KeyOrEnd | Expect::ValueOrEnd, b'}' | b']') => {
                self.close(byte)
            }
            (Expect::KeyOrEnd, b'"' | b'\'') => self.open_string(byte, true),
            (Expect::Value | Expect::ValueOrEnd, _) => self.value(byte),
            (Expect::Colon | Expect::CommaOrEnd | Expect::KeyOrEnd | Expect::Nothing, _) => {
                Step::Bad
            }
        }
    }

    fn value(&mut self, byte: u8) -> Step {
        match byte {
            b'{' => self.open(Bracket::Object),
            b'[' => self.open(Bracket::Array),
            b'"' => self.open_string(byte, false),
            b'\'' if self.depth > 0 => self.open_string(byte, false),
            b'-' | b'0'..=b'9' => self.open_word(WordState::Number),
            _ => match LITERALS.iter().find(|(word, _)| word.as_bytes().first() == Some(&byte)) {
                Some((which, python)) => {
                    self.python |= python;
                    self.open_word(WordState::Literal { which, next: 1 })
                }
                None => Step::Bad,
            },
        }
    }

    fn open_word(&mut self, at: WordState) -> Step {
        self.lexeme = Lexeme::Word { at };
        Step::WordOpen
    }

    fn open_string(&mut self, quote: u8, is_key: bool) -> Step {
        self.python |= quote == b'\'';
        self.lexeme = Lexeme::Str { quote, is_key, escaped: false };
        if is_key { Step::KeyOpen } else { Step::StringOpen }
    }

    fn open(&mut self, bracket: Bracket) -> Step {
        if self.depth >= MAX_DEPTH {
            return Step::Bad;
        }
        self.depth += 1;
        self.stack = (self.stack << 1) | u128::from(bracket == Bracket::Object);
        self.expect = match bracket {
            Bracket::Object => Expect::KeyOrEnd,
            Bracket::Array => Expect::ValueOrEnd,
        };
        Step::Open(bracket)
    }

    fn close(&mut self, byte: u8) -> Step {
        if (byte == b'}') != self.in_object() {
            return Step::Bad;
        }
        self.depth = self.depth.saturating_sub(1);
        self.stack >>= 1;
        self.value_ended();
        Step::Close
    }

    fn value_ended(&mut self) {
        self.expect = if self.depth == 0 { Expect::Nothing } else { Expect::CommaOrEnd };
    }

    fn in_object(&self) -> bool {
        self.stack & 1 == 1
    }
}

fn continue_word(at: WordState, byte: u8) -> Option<WordState> {
    match at {
        WordState::Number if matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-') => {
            Some(at)
        }
        WordState::Number => None,
        WordState::Literal { which, next } => {
            let fits = which.as_bytes().get(usize::from(next)) == Some(&byte);
            fits.then(|| WordState::Literal { which, next: next.saturating_add(1) })
        }
    }
}

/// How far [`Scanner::run`] came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Run {
    /// The value goes on.
    Open,
    /// It ended; so many bytes belong to it.
    Done(usize),
    /// It is not JSON.
    Bad,
}

/// Bytes that were scanned in this thread, so that a test can count work and not time.
#[cfg(test)]
pub(crate) mod work {
    use std::cell::Cell;

    thread_local! {
        static SCANNED: Cell<usize> = const { Cell::new(0) };
    }

    pub(crate) fn add(bytes: usize) {
        SCANNED.set(SCANNED.get() + bytes);
    }

    /// What was scanned since the last call.
    pub(crate) fn take() -> usize {
        SCANNED.replace(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(text: &str) -> Run {
        Scanner::new().run(text.as_bytes())
    }

    #[test]
    fn a_value_ends_at_its_own_bracket_and_not_at_one_inside_a_string() {
        assert_eq!(run(r#"{"a":"}","b":["]",{}]} tail"#), Run::Done(22));
        assert_eq!(run(r#""quoted \" text" x"#), Run::Done(16));
        assert_eq!(run(r#"{"a":"#), Run::Open);
    }

    #[test]
    fn what_is_not_a_prefix_of_json_is_bad_at_once() {
        for text in ["x", "{x", r#"{"a" 1"#, r#"{"a":1 2"#, "[1}", "{]", "nul!", "[tru1"] {
            assert_eq!(run(text), Run::Bad, "{text}");
        }
    }

    #[test]
    fn lossless_repairs_are_no_error() {
        for text in [
            "{\"a\":1,}",
            "[1,2,]",
            "{\"a\":\"x\ny\"}",
            r#"{"a":"\d"}"#,
            r#"{\n"a":\n1}"#,
            "{'a': True, 'b': None}",
            "{\"a\":1, // why\n\"b\":2}",
            "{/* why */}",
        ] {
            assert_eq!(run(text), Run::Done(text.len()), "{text}");
        }
    }

    #[test]
    fn nesting_beyond_the_limit_is_bad() {
        let deep = usize::from(MAX_DEPTH);
        assert_eq!(run(&"[".repeat(deep)), Run::Open);
        assert_eq!(run(&"[".repeat(deep + 1)), Run::Bad);
    }

    #[test]
    fn splitting_the_bytes_changes_nothing() {
        let text = r#"{"a":[1,-2.5e3,true,"é\"}"],"b":{"c":null}} {}"#.as_bytes();
        let mut scanner = Scanner::new();
        let first = text
            .iter()
            .position(|byte| !matches!(scanner.step(*byte), Step::Bad) && scanner.is_done());
        assert_eq!(Scanner::new().run(text), Run::Done(first.unwrap() + 1));
    }
}

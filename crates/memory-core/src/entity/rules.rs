//! One pass over the words of a text.

use serde_json::Value;

use super::shapes::{self, Shape};
use super::{EntityKind, Found};

/// Names that are joined into one.
const LONGEST_NAME: usize = 5;
/// Characters of a quotation.
const LONGEST_QUOTE: usize = 100;
/// Levels of JSON that are looked into.
const DEEPEST: usize = 8;

/// The scalars of a tool's JSON, with the name of their field.
pub(super) fn scalars(value: &Value, name: &str, found: &mut Found) {
    walk(value, name, DEEPEST, found);
}

fn walk(value: &Value, name: &str, depth: usize, found: &mut Found) {
    if found.is_full() || depth == 0 {
        return;
    }
    let named =
        |text: &str| if name.is_empty() { text.to_owned() } else { format!("{name}={text}") };
    match value {
        Value::Null => {}
        Value::Bool(is) => found.add(EntityKind::Scalar, &named(&is.to_string())),
        Value::Number(number) => found.add(EntityKind::Scalar, &named(&number.to_string())),
        Value::String(text) if text.chars().count() <= 60 => {
            found.add(EntityKind::Scalar, &named(text));
        }
        Value::String(text) => words(text, found),
        Value::Array(items) => items.iter().for_each(|item| walk(item, name, depth - 1, found)),
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| walk(value, name, depth - 1, found));
        }
    }
}

/// What stands between two pairs of quotation marks, then each word by its shape.
pub(super) fn words(text: &str, found: &mut Found) {
    quotes(text, found);
    let mut pass = Pass {
        found,
        name: Vec::new(),
        begins: true,
        amount: None,
        named_error: false,
        in_placeholder: false,
    };
    for raw in text.split_whitespace() {
        if pass.found.is_full() {
            return;
        }
        pass.word(raw);
    }
    pass.end_name();
    pass.end_amount(None);
}

fn quotes(text: &str, found: &mut Found) {
    for (open, close) in [('"', '"'), ('“', '”'), ('«', '»'), ('„', '“'), ('`', '`'), ('「', '」')]
    {
        let mut rest = text;
        while let Some(at) = rest.find(open) {
            let Some(after) = rest.get(at..).map(|from| from.trim_start_matches(open)) else {
                break;
            };
            let Some(end) = after.find(close) else { break };
            let (inside, beyond) = after.split_at(end);
            if inside.chars().count() <= LONGEST_QUOTE && !inside.contains('\n') {
                found.add(EntityKind::Quote, inside.trim());
            }
            rest = beyond.get(close.len_utf8()..).unwrap_or("");
        }
    }
}

struct Pass<'f> {
    found: &'f mut Found,
    name: Vec<String>,
    begins: bool,
    amount: Option<String>,
    named_error: bool,
    in_placeholder: bool,
}

impl Pass<'_> {
    fn word(&mut self, raw: &str) {
        // What stands for a secret names nothing.
        if self.in_placeholder || raw.contains(super::REDACTED) {
            self.in_placeholder = !raw.contains(']');
            self.end_name();
            return self.end_amount(None);
        }
        let word = raw.trim_matches(is_edge);
        let begins = std::mem::replace(&mut self.begins, ends_sentence(raw));
        if word.is_empty() {
            self.end_name();
            self.end_amount(None);
            return;
        }
        if self.amount.is_some() {
            let unit = shapes::is_unit(word).then_some(word);
            self.end_amount(unit);
            if unit.is_some() {
                return;
            }
        }
        let after_error = std::mem::replace(&mut self.named_error, shapes::names_a_code(word));
        match shapes::shape(word) {
            Shape::Number if after_error => self.is(EntityKind::ErrorCode, word),
            Shape::Number => {
                self.end_name();
                self.amount = Some(word.to_owned());
            }
            Shape::Entity(kind) => self.is(kind, word),
            Shape::Capitalised => self.capitalised(raw, word, begins),
            Shape::Plain => self.end_name(),
        }
        if raw.ends_with([',', ';', ':', '.', '!', '?', ')']) {
            self.end_name();
            self.end_amount(None);
        }
    }

    fn is(&mut self, kind: EntityKind, word: &str) {
        self.end_name();
        self.found.add(kind, word);
    }

    /// The first word of a sentence is capitalised anyhow: it counts only as the first of several.
    fn capitalised(&mut self, raw: &str, word: &str, begins: bool) {
        if begins || raw.starts_with(['(', '[']) {
            self.end_name();
        }
        let mark = if begins { "^" } else { "" };
        if self.name.len() < LONGEST_NAME {
            self.name.push(format!("{mark}{word}"));
        }
    }

    fn end_name(&mut self) {
        let parts = std::mem::take(&mut self.name);
        let is_lone_first = parts.len() == 1 && parts.iter().all(|part| part.starts_with('^'));
        if !parts.is_empty() && !is_lone_first {
            let name = parts.join(" ");
            self.found.add(EntityKind::Name, name.trim_start_matches('^'));
        }
    }

    fn end_amount(&mut self, unit: Option<&str>) {
        if let Some(amount) = self.amount.take() {
            let text = unit.map_or_else(|| amount.clone(), |unit| format!("{amount} {unit}"));
            self.found.add(EntityKind::Amount, &text);
        }
    }
}

fn is_edge(c: char) -> bool {
    matches!(
        c,
        '.' | ','
            | ';'
            | ':'
            | '!'
            | '?'
            | '('
            | ')'
            | '['
            | ']'
            | '{'
            | '}'
            | '"'
            | '\''
            | '“'
            | '”'
            | '„'
            | '«'
            | '»'
            | '`'
            | '*'
            | '<'
            | '>'
            | '¿'
            | '¡'
            | '…'
            | '。'
            | '，'
            | '！'
            | '？'
            | '「'
            | '」'
    )
}

fn ends_sentence(raw: &str) -> bool {
    raw.trim_end_matches(['"', '\'', ')', '”', '*'])
        .ends_with(['.', '!', '?', ':', '。', '！', '？'])
        || raw.chars().all(|c| matches!(c, '-' | '*' | '#' | '•' | '|' | '>'))
}

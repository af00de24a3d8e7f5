//! A YAML file as a tree in which every value knows its line and column.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::Spanned;

use crate::problem::{Problem, Report};

/// A value with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// From 1.
    pub line: u32,
    /// From 1.
    pub column: u32,
    /// What it is.
    pub kind: Kind,
}

/// What a node is.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// Nothing: an empty value, `null` or `~`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(Number),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// Fields in the order of the file.
    Map(Vec<Entry>),
}

/// One field of a map.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Its value, placed at the name when it is empty.
    pub node: Node,
    /// The name's own place.
    pub name_at: (u32, u32),
}

impl Node {
    /// The value as JSON.
    pub fn to_json(&self) -> Value {
        match &self.kind {
            Kind::Null => Value::Null,
            Kind::Bool(value) => Value::Bool(*value),
            Kind::Number(number) => Value::Number(number.clone()),
            Kind::Text(text) => Value::String(text.clone()),
            Kind::List(items) => items.iter().map(Self::to_json).collect(),
            Kind::Map(entries) => {
                let fields = entries.iter().map(|entry| (entry.name.clone(), entry.node.to_json()));
                Value::Object(fields.collect::<Map<_, _>>())
            }
        }
    }

    /// A value as a node, all of it at one place of a file.
    pub(crate) fn of_json(value: &Value, at: (u32, u32)) -> Self {
        let kind = match value {
            Value::Null => Kind::Null,
            Value::Bool(value) => Kind::Bool(*value),
            Value::Number(number) => Kind::Number(number.clone()),
            Value::String(text) => Kind::Text(text.clone()),
            Value::Array(items) => {
                Kind::List(items.iter().map(|item| Self::of_json(item, at)).collect())
            }
            Value::Object(fields) => {
                let entry = |(name, value): (&String, &Value)| Entry {
                    name: name.clone(),
                    node: Self::of_json(value, at),
                    name_at: at,
                };
                Kind::Map(fields.iter().map(entry).collect())
            }
        };
        Self { line: at.0, column: at.1, kind }
    }

    /// The value in a few words, for "found …".
    pub fn shown(&self) -> String {
        match &self.kind {
            Kind::Null => "nothing".to_owned(),
            Kind::Bool(value) => value.to_string(),
            Kind::Number(number) => number.to_string(),
            Kind::Text(text) => quoted(text),
            Kind::List(items) => format!("a list of {}", items.len()),
            Kind::Map(entries) => {
                let names = entries.iter().map(|entry| entry.name.as_str());
                format!("a map of {}", cut(&names.collect::<Vec<_>>().join(", ")))
            }
        }
    }

    /// The value of a field of a map.
    pub fn get(&self, name: &str) -> Option<&Self> {
        self.entries().iter().find(|entry| entry.name == name).map(|entry| &entry.node)
    }

    /// The fields of a map; none for anything else.
    pub fn entries(&self) -> &[Entry] {
        if let Kind::Map(entries) = &self.kind { entries } else { &[] }
    }

    /// The text of a text.
    pub fn as_text(&self) -> Option<&str> {
        if let Kind::Text(text) = &self.kind { Some(text) } else { None }
    }

    /// Whether the value is empty.
    pub fn is_null(&self) -> bool {
        self.kind == Kind::Null
    }
}

/// Text in quotes, on one line, cut.
pub fn quoted(text: &str) -> String {
    Value::String(cut(text)).to_string()
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Reads a file; a file that is not YAML is one problem.
pub fn read(file: &str, text: &str) -> Result<Node, Vec<Problem>> {
    let options = serde_saphyr::options! {
        strict_booleans: true,
        with_snippet: false,
    };
    let read = serde_saphyr::from_str_with_options::<Option<Spanned<Node>>>(text, options);
    match read {
        Ok(Some(spanned)) => Ok(placed(spanned)),
        Ok(None) => Ok(Node { line: 1, column: 1, kind: Kind::Null }),
        Err(error) => Err(vec![unreadable(file, text, &error)]),
    }
}

fn unreadable(file: &str, text: &str, error: &serde_saphyr::Error) -> Problem {
    let formatter = serde_saphyr::UserMessageFormatter;
    let options = serde_saphyr::render_options! {
        formatter: &formatter,
        snippets: serde_saphyr::SnippetMode::Off,
    };
    let own = error.render_with_options(options);
    let own = own.split(" at line ").next().unwrap_or_default();
    let place = error.location();
    if ["found a tab", "tabs"].iter().any(|words| own.contains(words))
        && let Some((line, column)) = tab(text, place.map_or(0, |place| small(place.line())))
    {
        return Problem {
            file: file.to_owned(),
            line,
            column,
            field: String::new(),
            expected: "blanks".to_owned(),
            found: "a tab".to_owned(),
            fix: format!(
                "replace the tab by spaces: YAML takes no tabs before what line {line} says"
            ),
        };
    }
    let is_layout = ["block", "indent", "tab"].iter().any(|word| own.contains(word));
    let line = place.filter(|_| is_layout).map_or(0, |place| small(place.line()));
    let fix = hint(text, line);
    Problem {
        file: file.to_owned(),
        line: place.map_or(0, |place| small(place.line())),
        column: place.map_or(0, |place| small(place.column())),
        field: String::new(),
        expected: "one YAML document with unique names".to_owned(),
        found: own.trim().trim_end_matches('.').replace('\n', " "),
        fix,
    }
}

/// The first tab before what a line says, from the line at which reading failed on.
fn tab(text: &str, from: u32) -> Option<(u32, u32)> {
    let number = |index: usize| u32::try_from(index.saturating_add(1)).unwrap_or(u32::MAX);
    let tab_of = |line: &str| {
        let head = line.len().saturating_sub(line.trim_start_matches([' ', '\t']).len());
        line.find('\t').filter(|at| *at < head && head < line.len())
    };
    let lines = text.lines().enumerate();
    let mut lines = lines.skip(usize::try_from(from.saturating_sub(1)).unwrap_or(0));
    lines.find_map(|(index, line)| Some((number(index), number(tab_of(line)?))))
}

/// What most likely went wrong at a line.
fn hint(text: &str, line: u32) -> String {
    let usual = "correct the file at this place; put text with `: ` or `{` in quotes";
    if line == 0 {
        return usual.to_owned();
    }
    let before = usize::try_from(line).unwrap_or(0).saturating_sub(1);
    let mut lines = text.lines().enumerate().take(before.saturating_add(1)).collect::<Vec<_>>();
    let is_said = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    lines.retain(|(_, line)| is_said(line));
    let indent = |line: &str| line.len().saturating_sub(line.trim_start_matches([' ', '\t']).len());
    let head = |line: &str| line.get(..indent(line)).unwrap_or_default().to_owned();
    if let Some((at, _)) = lines.iter().find(|(_, line)| head(line).contains('\t')) {
        return format!("replace the tab in line {} by spaces", at.saturating_add(1));
    }
    let Some(((at, last), above)) = lines.split_last() else { return usual.to_owned() };
    let levels: Vec<usize> = above.iter().map(|(_, line)| indent(line)).collect();
    let opens = above.last().is_none_or(|(_, line)| line.trim_end().ends_with(':'));
    if above.is_empty() || levels.contains(&indent(last)) || opens {
        return usual.to_owned();
    }
    let nearest = levels.iter().min_by_key(|level| level.abs_diff(indent(last)));
    let nearest = nearest.copied().unwrap_or_default();
    format!(
        "indent line {} like the lines it belongs to: it has {} blanks, a line above has {nearest}",
        at.saturating_add(1),
        indent(last),
    )
}

fn small(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn placed(spanned: Spanned<Node>) -> Node {
    let at = spanned.referenced;
    Node { line: small(at.line()), column: small(at.column()), kind: spanned.value.kind }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let kind = deserializer.deserialize_any(KindVisitor)?;
        Ok(Self { line: 0, column: 0, kind })
    }
}

struct KindVisitor;

impl<'de> Visitor<'de> for KindVisitor {
    type Value = Kind;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Kind, E> {
        Ok(Kind::Null)
    }

    fn visit_none<E>(self) -> Result<Kind, E> {
        Ok(Kind::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Kind, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Kind, E> {
        Ok(Kind::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Kind, E> {
        Ok(Kind::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Kind, E> {
        Ok(Kind::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Kind, E> {
        Ok(Number::from_f64(value).map_or_else(|| Kind::Text(value.to_string()), Kind::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Kind, E> {
        Ok(Kind::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Kind, A::Error> {
        let mut nodes = Vec::new();
        while let Some(item) = items.next_element::<Spanned<Node>>()? {
            nodes.push(placed(item));
        }
        Ok(Kind::List(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Kind, A::Error> {
        let mut entries = Vec::new();
        while let Some(name) = fields.next_key::<Spanned<String>>()? {
            let mut node = placed(fields.next_value::<Spanned<Node>>()?);
            let at = name.referenced;
            let name_at = (small(at.line()), small(at.column()));
            if node.is_null() && name_at.0 > 0 {
                (node.line, node.column) = name_at;
            }
            entries.push(Entry { name: name.value, node, name_at });
        }
        Ok(Kind::Map(entries))
    }
}

/// A node with the path that leads to it.
#[derive(Clone, Debug)]
pub struct Place<'n> {
    node: &'n Node,
    field: String,
}

impl<'n> Place<'n> {
    /// The whole file.
    pub fn root(node: &'n Node) -> Self {
        Self { node, field: String::new() }
    }

    /// The value here.
    pub fn node(&self) -> &'n Node {
        self.node
    }

    /// The path, such as `tools[0].run`.
    pub fn field(&self) -> &str {
        &self.field
    }

    /// The place of a field.
    #[must_use]
    pub fn child(&self, name: &str, node: &'n Node) -> Self {
        let field =
            if self.field.is_empty() { name.to_owned() } else { format!("{}.{name}", self.field) };
        Self { node, field }
    }

    /// The same value with a path of its own.
    #[must_use]
    pub(crate) fn renamed(self, field: &str) -> Self {
        Self { field: field.to_owned(), ..self }
    }

    /// The place of an item.
    #[must_use]
    pub fn item(&self, index: usize, node: &'n Node) -> Self {
        Self { node, field: format!("{}[{index}]", self.field) }
    }

    /// The text here.
    pub fn text(&self, report: &mut Report) -> Option<&'n str> {
        let text = self.node.as_text();
        if text.is_none() {
            report.wrong(self, "text", "write text, in quotes if it looks like a number");
        }
        text
    }

    /// Text that says something.
    pub fn words(&self, report: &mut Report) -> Option<&'n str> {
        let text = self.text(report)?.trim();
        if text.is_empty() {
            report.wrong(self, "text that is not empty", "write it or leave the field out");
            return None;
        }
        Some(text)
    }

    /// The truth value here.
    pub fn truth(&self, report: &mut Report) -> Option<bool> {
        if let Kind::Bool(value) = self.node.kind {
            return Some(value);
        }
        report.wrong(self, "true or false", "write `true` or `false` without quotes");
        None
    }

    /// A whole number within limits.
    pub fn whole(&self, least: u64, most: u64, report: &mut Report) -> Option<u64> {
        let number =
            if let Kind::Number(number) = &self.node.kind { number.as_u64() } else { None };
        let number = number.filter(|number| (least..=most).contains(number));
        if number.is_none() {
            let expected = format!("a whole number from {least} to {most}");
            report.wrong(self, expected, "write such a number without quotes");
        }
        number
    }

    /// A number within limits.
    pub fn number(&self, least: f64, most: f64, report: &mut Report) -> Option<f64> {
        let number =
            if let Kind::Number(number) = &self.node.kind { number.as_f64() } else { None };
        let number = number.filter(|number| (least..=most).contains(number));
        if number.is_none() {
            let expected = format!("a number from {least} to {most}");
            report.wrong(self, expected, "write such a number without quotes");
        }
        number
    }

    /// The items of a list.
    pub fn list(&self, report: &mut Report) -> Option<Vec<Self>> {
        let Kind::List(items) = &self.node.kind else {
            report.wrong(self, "a list", "write `- ` before each item, or `[a, b]`");
            return None;
        };
        Some(items.iter().enumerate().map(|(index, node)| self.item(index, node)).collect())
    }

    /// A list of texts, or a single text.
    pub fn texts(&self, report: &mut Report) -> Option<Vec<String>> {
        if let Some(text) = self.node.as_text() {
            return Some(vec![text.to_owned()]);
        }
        let items = self.list(report)?;
        let texts: Vec<Option<&str>> = items.iter().map(|item| item.text(report)).collect();
        texts.into_iter().map(|text| text.map(str::to_owned)).collect()
    }

    /// One word of a closed set.
    pub fn choice<T: Copy>(&self, words: &[(&str, T)], report: &mut Report) -> Option<T> {
        let text = self.node.as_text();
        let chosen = words.iter().find(|(word, _)| Some(*word) == text);
        if chosen.is_none() {
            let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            let meant = text.and_then(|text| argument_check::nearest(text, names.iter().copied()));
            let fix = meant
                .map_or_else(|| "write one of them".to_owned(), |word| format!("write `{word}`"));
            report.wrong(self, format!("one of {}", names.join(", ")), fix);
        }
        chosen.map(|(_, value)| *value)
    }
}

//! The text of an HTML page: what a reader would see, without layout. It takes time in proportion
//! to the page, whatever the page is.

/// Elements whose content nobody reads.
const UNSEEN: [&str; 6] = ["script", "style", "noscript", "template", "svg", "iframe"];

/// Elements that begin and end lines.
const BLOCKS: [&str; 33] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "body",
    "br",
    "dd",
    "div",
    "dl",
    "dt",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "head",
    "header",
    "hr",
    "li",
    "main",
    "nav",
    "ol",
    "p",
    "pre",
    "section",
    "table",
    "title",
    "tr",
    "ul",
];

/// The text of a page.
pub(super) fn text(page: &str) -> String {
    let mut reader = Reader { rest: page, quotes: true, text: Text::default() };
    while let Some((before, from)) = reader.next() {
        reader.text.add(before);
        reader.rest = from;
        reader.markup();
    }
    reader.text.add(reader.rest);
    reader.text.finish()
}

struct Reader<'p> {
    rest: &'p str,
    /// Whether quotes may hide the end of a tag; a page whose quotes do not match has none.
    quotes: bool,
    text: Text,
}

impl<'p> Reader<'p> {
    /// The text before the next `<`, and the page from there on.
    fn next(&self) -> Option<(&'p str, &'p str)> {
        self.rest.find('<').and_then(|at| self.rest.split_at_checked(at))
    }

    /// Reads what begins with `<`.
    fn markup(&mut self) {
        let inner = self.rest.strip_prefix('<').unwrap_or_default();
        if let Some(comment) = inner.strip_prefix("!--") {
            self.rest = comment.split_once("-->").map_or("", |(_, rest)| rest);
            return;
        }
        if !inner.starts_with(|c: char| c.is_ascii_alphabetic() || "/!?".contains(c)) {
            self.text.add("<");
            self.rest = inner;
            return;
        }
        let end = self.tag_end(inner);
        let (tag, rest) = inner.split_at_checked(end).unwrap_or((inner, ""));
        self.rest = rest.strip_prefix('>').unwrap_or(rest);
        self.tag(tag);
    }

    fn tag_end(&mut self, inner: &str) -> usize {
        if self.quotes {
            if let Some(end) = quoted_end(inner) {
                return end;
            }
            self.quotes = false;
        }
        inner.find('>').unwrap_or(inner.len())
    }

    fn tag(&mut self, tag: &str) {
        let is_end = tag.starts_with('/');
        let name = tag.trim_start_matches('/');
        let name = name.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
        let name = name.to_ascii_lowercase();
        if !is_end && !tag.ends_with('/') && UNSEEN.contains(&name.as_str()) {
            self.rest = after_end_of(&name, self.rest);
            return;
        }
        if BLOCKS.contains(&name.as_str()) {
            self.text.line();
        }
        if !is_end && name == "li" {
            self.text.add("- ");
        }
        if name == "td" || name == "th" {
            self.text.add(" ");
        }
    }
}

/// The `>` outside quotes.
fn quoted_end(inner: &str) -> Option<usize> {
    let mut quote = None;
    for (at, c) in inner.char_indices() {
        match (quote, c) {
            (None, '>') => return Some(at),
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            (None | Some(_), _) => {}
        }
    }
    None
}

/// What follows `</name>`; nothing when it does not end.
fn after_end_of<'p>(name: &str, page: &'p str) -> &'p str {
    let mut rest = page;
    while let Some((_, after)) = rest.split_once("</") {
        let is_it = after.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
        if is_it {
            return after.split_once('>').map_or("", |(_, rest)| rest);
        }
        rest = after;
    }
    ""
}

/// Text whose blanks are collapsed.
#[derive(Debug, Default)]
struct Text {
    text: String,
    blank: bool,
}

impl Text {
    fn add(&mut self, raw: &str) {
        let mut rest = raw;
        while let Some((before, after)) = rest.split_once('&') {
            self.letters(before);
            let (c, after) = entity(after).unwrap_or(('&', after));
            self.letter(c);
            rest = after;
        }
        self.letters(rest);
    }

    fn letters(&mut self, text: &str) {
        text.chars().for_each(|c| self.letter(c));
    }

    fn letter(&mut self, c: char) {
        if c.is_whitespace() {
            self.blank = true;
            return;
        }
        if self.blank && !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push(' ');
        }
        self.blank = false;
        self.text.push(c);
    }

    /// Ends the line, if there is one.
    fn line(&mut self) {
        self.blank = false;
        if self.text.ends_with("- ") || self.text.ends_with('\n') || self.text.is_empty() {
            return;
        }
        self.text.push('\n');
    }

    fn finish(mut self) -> String {
        self.line();
        self.text
    }
}

/// The character of a reference, and what follows it.
fn entity(after: &str) -> Option<(char, &str)> {
    const LONGEST: usize = 10;
    let end = after.bytes().take(LONGEST).position(|byte| byte == b';')?;
    let (name, rest) = after.split_at_checked(end)?;
    let number = name.strip_prefix('#').map(|number| {
        let hex = number.strip_prefix(['x', 'X']);
        hex.map_or_else(|| number.parse(), |hex| u32::from_str_radix(hex, 16))
    });
    let c = match (name, number) {
        (_, Some(number)) => char::from_u32(number.ok()?).filter(|c| !c.is_control())?,
        ("amp", None) => '&',
        ("lt", None) => '<',
        ("gt", None) => '>',
        ("quot", None) => '"',
        ("apos", None) => '\'',
        ("nbsp", None) => ' ',
        ("ndash", None) => '–',
        ("mdash", None) => '—',
        ("hellip", None) => '…',
        ("copy", None) => '©',
        ("euro", None) => '€',
        _ => return None,
    };
    Some((c, rest.strip_prefix(';').unwrap_or(rest)))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    fn check(page: &str, expected: &Expect) {
        expected.assert_eq(&text(page));
    }

    #[test]
    fn a_page_becomes_what_a_reader_sees() {
        let page = r#"<!doctype html><html><head><title>On &amp; off</title>
            <style>p > a { color: red }</style><script>if (1 < 2) { document.write("</p>") }</script>
            </head><body><!-- <p>hidden</p> --><h1>Hello,
            <em>world</em>!</h1><p title="a > b">2 &lt; 3 &#x1F600; &unknown; 5 < 6</p>
            <ul><li>one<li><b>two</b></ul><table><tr><td>a</td><td>b</td></tr></table></body></html>"#;
        check(
            page,
            &expect![[r"
                On & off
                Hello, world!
                2 < 3 😀 &unknown; 5 < 6
                - one
                - two
                a b
            "]],
        );
    }

    #[test]
    fn pages_that_do_not_end_well_are_read_as_far_as_they_go() {
        check(
            "a<script>b",
            &expect![["
            a
        "]],
        );
        check(
            "a<!-- b",
            &expect![["
            a
        "]],
        );
        check(
            r#"a<i title="x>b</i>c"#,
            &expect![["
            abc
        "]],
        );
        check(
            "a<b",
            &expect![["
            a
        "]],
        );
        check("", &expect![""]);
    }

    proptest! {
        #[test]
        fn no_page_breaks_it_and_no_script_shows(
            parts in prop::collection::vec(prop::sample::select(vec![
                "<", ">", "</", "<p>", "<!--", "-->", "<script>", "</script>", "&", "&#", ";", "é",
                "\"", "'", "<a href='", "/>", " ", "\n", "😀", "<li>", "&lt;",
            ]), 0..60),
        ) {
            let page = format!("{}</script><script>SECRET", parts.concat().replace("<!--", ""));
            let seen = text(&page);
            prop_assert!(seen.len() <= page.len() + 2 * parts.len() + 1);
        }
    }
}

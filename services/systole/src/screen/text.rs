//! Text on its way to a terminal: made harmless, measured in columns, cut and wrapped.

use proto::time::Timestamp;
use unicode_width::UnicodeWidthChar;

/// Text without anything that a terminal would obey or that hides what is shown: models and tools
/// write what they like. Line feeds stay, tabs become blanks, other controls become visible.
pub(crate) fn clean(text: &str) -> String {
    text.chars().filter_map(clean_char).collect()
}

fn clean_char(c: char) -> Option<char> {
    match c {
        '\n' => Some('\n'),
        '\t' => Some(' '),
        '\r' => None,
        '\u{0}'..='\u{1f}' => char::from_u32(0x2400 + u32::from(c)),
        '\u{7f}' => Some('\u{2421}'),
        // Second controls and marks that reorder a line.
        '\u{80}'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => Some('\u{fffd}'),
        other => Some(other),
    }
}

/// What a person reads when a lost tail was restored.
pub(crate) fn restored_line(again: usize, in_doubt: usize) -> String {
    format!(
        "! the newest records were lost; going on from what was known ({again} calls made again,          {in_doubt} in doubt)"
    )
}

/// The same on one line.
pub(crate) fn one_line(text: &str) -> String {
    clean(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// An instant as people read it: UTC, to the second.
pub(crate) fn instant(at: Timestamp) -> String {
    match jiff::Timestamp::from_millisecond(at.0) {
        Ok(instant) => instant.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        Err(_) => at.to_string(),
    }
}

/// Columns that a text takes.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().map(char_columns).sum()
}

/// The mark for emoji presentation widens the character before it.
fn char_columns(c: char) -> usize {
    if c == '\u{fe0f}' { 1 } else { c.width().unwrap_or(0) }
}

/// At most `most` columns, with an ellipsis when something was cut.
pub(crate) fn cut(text: &str, most: usize) -> String {
    if columns(text) <= most {
        return text.to_owned();
    }
    if most == 0 {
        return String::new();
    }
    let end = fitting(text, most.saturating_sub(1));
    format!("{}…", text.get(..end).unwrap_or_default())
}

/// The number of bytes that fit into `most` columns.
fn fitting(text: &str, most: usize) -> usize {
    let mut used = 0_usize;
    for (at, c) in text.char_indices() {
        used = used.saturating_add(char_columns(c));
        if used > most {
            return at;
        }
    }
    text.len()
}

/// Text that comes in pieces, handed out line by line.
#[derive(Debug)]
pub(crate) struct Wrapper {
    columns: Option<usize>,
    pending: String,
}

impl Wrapper {
    /// Lines of at most `columns`; as long as they come without a number.
    pub(crate) fn new(columns: Option<usize>) -> Self {
        Self { columns: columns.map(|columns| columns.max(8)), pending: String::new() }
    }

    /// Takes a piece, which must be clean, and returns the lines that are complete.
    pub(crate) fn push(&mut self, piece: &str) -> Vec<String> {
        self.pending.push_str(piece);
        let mut lines = Vec::new();
        while let Some((end, next)) = self.line_end() {
            lines.push(self.pending.get(..end).unwrap_or_default().trim_end().to_owned());
            self.pending.drain(..next);
        }
        lines
    }

    /// The line that is still growing.
    pub(crate) fn growing(&self) -> &str {
        &self.pending
    }

    /// The last line, if anything is left.
    pub(crate) fn finish(&mut self) -> Option<String> {
        let last = std::mem::take(&mut self.pending);
        let last = last.trim_end();
        (!last.is_empty()).then(|| last.to_owned())
    }

    /// Where the first line ends and where the next one begins, if the first is complete.
    fn line_end(&self) -> Option<(usize, usize)> {
        let feed = self.pending.find('\n');
        let first = self.pending.get(..feed.unwrap_or(self.pending.len())).unwrap_or_default();
        match self.columns {
            Some(most) if columns(first.trim_end()) > most => Some(wrap_at(first, most)),
            Some(_) | None => feed.map(|at| (at, at.saturating_add(1))),
        }
    }
}

/// The last blank that fits, else in the middle of a word.
fn wrap_at(line: &str, most: usize) -> (usize, usize) {
    let end = fitting(line, most);
    // A blank right behind the part that fits is a good end too.
    let head = line.get(..end).unwrap_or_default();
    if line.get(end..).is_some_and(|rest| rest.starts_with(' ')) {
        return (end, end.saturating_add(1));
    }
    let is_behind_a_word = |at: &usize| !head.get(..*at).unwrap_or_default().trim().is_empty();
    match head.rfind(' ').filter(is_behind_a_word) {
        Some(at) => (at, at.saturating_add(1)),
        None => (end.max(first_char(line)), end.max(first_char(line))),
    }
}

fn first_char(line: &str) -> usize {
    line.chars().next().map_or(1, char::len_utf8)
}

/// A whole text in lines of at most `columns`.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut wrapper = Wrapper::new(Some(columns));
    let mut lines = wrapper.push(text);
    lines.extend(wrapper.finish());
    lines
}

/// A text in lines of at most `most` columns, if there is such a limit. All but the first begin
/// with `indent` blanks.
pub(crate) fn hanging(text: &str, most: Option<usize>, indent: usize) -> Vec<String> {
    let Some(most) = most.filter(|most| columns(text) > *most) else {
        return vec![text.to_owned()];
    };
    let lines = wrap(text, most.saturating_sub(indent)).into_iter();
    let blanks = std::iter::once(0).chain(std::iter::repeat(indent));
    blanks.zip(lines).map(|(blanks, line)| " ".repeat(blanks) + &line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_does_not_fit_hangs_below_its_first_line() {
        let hung = |most| hanging("one  two three four", most, 4);
        assert_eq!(hung(None), ["one  two three four"]);
        assert_eq!(hung(Some(19)), ["one  two three four"]);
        assert_eq!(hung(Some(18)), ["one  two three", "    four"]);
    }

    #[test]
    fn what_a_terminal_would_obey_is_shown_instead() {
        assert_eq!(
            clean("a\u{1b}[31mb\r\n\tc\u{7f}\u{202e}d\u{9b}"),
            "a\u{241b}[31mb\n c\u{2421}\u{fffd}d\u{fffd}"
        );
    }

    #[test]
    fn wide_characters_count_twice_and_marks_not() {
        assert_eq!(columns("e\u{301}日本☺\u{fe0f}"), 1 + 4 + 2);
        assert_eq!(cut("日本語です", 5), "日本…");
        assert_eq!(cut("short", 5), "short");
        assert_eq!(cut("short", 0), "");
    }

    #[test]
    fn lines_break_at_blanks_and_long_words_in_the_middle() {
        assert_eq!(wrap("one two three\nfour", 8), ["one two", "three", "four"]);
        assert_eq!(wrap("abcdefghijklmnop q", 8), ["abcdefgh", "ijklmnop", "q"]);
        assert_eq!(wrap("\n\na", 8), ["", "", "a"]);
    }

    #[test]
    fn pieces_make_the_same_lines_as_the_whole() {
        let text = "The service answers 503 to every request — its pool 日本語日本語日本語 is exhausted.\n\n  indented";
        for columns in [8, 13, 40, 200] {
            let mut wrapper = Wrapper::new(Some(columns));
            let mut lines: Vec<String> =
                text.chars().flat_map(|c| wrapper.push(&c.to_string())).collect();
            lines.extend(wrapper.finish());
            assert_eq!(lines, wrap(text, columns), "{columns} columns");
            assert!(lines.iter().all(|line| super::columns(line) <= columns), "{lines:?}");
        }
    }

    #[test]
    fn without_a_width_only_line_feeds_break() {
        let mut wrapper = Wrapper::new(None);
        assert_eq!(wrapper.push("one two "), Vec::<String>::new());
        assert_eq!(wrapper.push("three\nfour"), ["one two three"]);
        assert_eq!(wrapper.finish(), Some("four".to_owned()));
    }
}

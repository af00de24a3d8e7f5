//! Lines that stay, and below them, on a terminal, a few rows that are drawn anew.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};

use super::text;

/// The most rows that are drawn anew.
const MOST_ROWS: usize = 8;
/// The width where there is no terminal.
const PAGE: usize = 100;

/// How wide a terminal is at this moment.
pub(crate) type Columns = fn() -> usize;

/// Where lines go.
pub(crate) struct Canvas<W> {
    out: W,
    columns: Option<Columns>,
    drawn: usize,
    /// Whether the cursor stands behind a question that nobody has answered with a line.
    is_behind_question: bool,
}

impl<W: Write> Canvas<W> {
    /// With a terminal's width rows can be drawn anew; without one lines are only added.
    pub(crate) fn new(out: W, columns: Option<Columns>) -> Self {
        Self { out, columns, drawn: 0, is_behind_question: false }
    }

    /// Whether rows can be drawn anew.
    pub(crate) fn is_live(&self) -> bool {
        self.columns.is_some()
    }

    /// The columns a line may take. One stays free, so that no terminal wraps by itself.
    pub(crate) fn width(&self) -> usize {
        self.columns.map_or(PAGE, |columns| columns().saturating_sub(1).max(20))
    }

    /// The columns at which running text is wrapped; none where somebody else does it.
    pub(crate) fn wrap_width(&self) -> Option<usize> {
        self.columns.map(|_| self.width())
    }

    /// Adds lines that stay and draws the rows below them.
    pub(crate) fn draw(&mut self, lines: &[String], rows: &[String]) -> io::Result<()> {
        let rows = if self.is_live() { rows } else { &[] };
        if lines.is_empty() && rows.is_empty() && self.drawn == 0 {
            return Ok(());
        }
        let mut out = self.erasing();
        if std::mem::take(&mut self.is_behind_question) {
            out.push('\n');
        }
        for line in lines {
            out.push_str(line);
            out.push('\n');
        }
        let shown = rows.get(rows.len().saturating_sub(MOST_ROWS)..).unwrap_or_default();
        for row in shown {
            out.push_str(row);
            out.push('\n');
        }
        self.drawn = shown.len();
        self.send(&out)
    }

    /// Adds lines and leaves the cursor behind `question`.
    pub(crate) fn ask(&mut self, lines: &[String], question: &str) -> io::Result<()> {
        self.draw(lines, &[])?;
        self.is_behind_question = true;
        self.send(question)
    }

    /// The question was answered: whoever typed the line ended it.
    pub(crate) fn answered(&mut self) {
        self.is_behind_question = false;
    }

    fn erasing(&self) -> String {
        let mut out = String::new();
        if self.drawn > 0 {
            // Writing to a string cannot fail.
            write!(out, "\r\u{1b}[{}A\u{1b}[J", self.drawn).unwrap_or_default();
        }
        out
    }

    fn send(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }
}

/// The columns that lines printed to standard output may take; without a terminal any number.
pub(crate) fn page() -> Option<usize> {
    io::stdout().is_terminal().then(|| terminal_columns().saturating_sub(1))
}

/// The width of the terminal on standard output; 80 when it does not say.
pub(crate) fn terminal_columns() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stdout());
    size.ok().map_or(80, |size| usize::from(size.ws_col)).max(20)
}

/// A row that fits.
pub(crate) fn row(text: &str, width: usize) -> String {
    text::cut(text, width)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// What a terminal shows of a stream of bytes: as much of one as a canvas uses.
    pub(crate) fn shown(bytes: &[u8]) -> Vec<String> {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let mut lines = vec![String::new()];
        let mut row = 0_usize;
        let mut rest = text.as_str();
        while let Some(c) = rest.chars().next() {
            rest = &rest[c.len_utf8()..];
            match c {
                '\n' => {
                    row += 1;
                    if row == lines.len() {
                        lines.push(String::new());
                    }
                }
                '\r' => {}
                '\u{1b}' => {
                    let end = rest.find(|c: char| c.is_ascii_alphabetic()).unwrap();
                    let number = rest[1..end].parse().unwrap_or(1);
                    match &rest[end..=end] {
                        "A" => row -= number,
                        "J" => {
                            lines.truncate(row + 1);
                            lines[row].clear();
                        }
                        "m" => {}
                        other => panic!("escape {other}"),
                    }
                    rest = &rest[end + 1..];
                }
                other => lines[row].push(other),
            }
        }
        lines
    }

    fn strings(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|line| (*line).to_owned()).collect()
    }

    #[test]
    fn rows_give_way_to_lines_and_to_newer_rows() {
        let mut canvas = Canvas::new(Vec::new(), Some(|| 40));
        canvas.draw(&strings(&["first"]), &strings(&["a running", "b running"])).unwrap();
        canvas.draw(&strings(&["a done"]), &strings(&["b running 1 s"])).unwrap();
        assert_eq!(shown(&canvas.out), ["first", "a done", "b running 1 s", ""]);
        canvas.draw(&strings(&["b done"]), &[]).unwrap();
        assert_eq!(shown(&canvas.out), ["first", "a done", "b done", ""]);
    }

    #[test]
    fn what_follows_an_open_question_begins_a_line_of_its_own() {
        let mut canvas = Canvas::new(Vec::new(), Some(|| 40));
        canvas.ask(&[], "pay? ").unwrap();
        canvas.draw(&strings(&["stopping"]), &[]).unwrap();
        canvas.ask(&[], "call? ").unwrap();
        canvas.answered();
        // The terminal echoed the line's end.
        canvas.out.push(b'\n');
        canvas.draw(&strings(&["done"]), &[]).unwrap();
        assert_eq!(shown(&canvas.out), ["pay? ", "stopping", "call? ", "done", ""]);
    }

    #[test]
    fn without_a_terminal_nothing_is_drawn_anew() {
        let mut canvas = Canvas::new(Vec::new(), None);
        canvas.draw(&strings(&["first"]), &strings(&["a running"])).unwrap();
        canvas.draw(&strings(&["a done"]), &[]).unwrap();
        assert_eq!(String::from_utf8(canvas.out).unwrap(), "first\na done\n");
    }
}

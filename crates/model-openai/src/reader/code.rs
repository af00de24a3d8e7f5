//! What is code within text.

/// Whether the text is inside code: between equal runs of backticks, inline code within one
/// paragraph.
#[derive(Debug, Default)]
pub(crate) struct Code {
    open: usize,
    newline: bool,
}

impl Code {
    pub(crate) fn is_open(&self) -> bool {
        self.open > 0
    }

    pub(crate) fn ticks(&mut self, run: usize) {
        self.newline = false;
        if self.open == 0 {
            self.open = run;
        } else if self.open == run || (self.open >= 3 && run >= self.open) {
            self.open = 0;
        }
    }

    pub(crate) fn text(&mut self, c: char) {
        let is_paragraph_end = c == '\n' && self.newline;
        self.newline = c == '\n' || (self.newline && c.is_whitespace());
        if is_paragraph_end && self.open < 3 {
            self.open = 0;
        }
    }
}

//! What is code within text.

/// Whether the text is inside code: between equal runs of backticks, inline code within one
/// paragraph.
#[derive(Debug, Default)]
pub(crate) struct Code {
    /// The run of backticks that opened it.
    open: usize,
    /// The run that is just coming.
    run: usize,
    newline: bool,
}

impl Code {
    /// Whether the last character stands inside code.
    pub(crate) fn is_open(&self) -> bool {
        self.open > 0
    }

    /// Takes the next character.
    pub(crate) fn take(&mut self, c: char) {
        if c == '`' {
            self.run = self.run.saturating_add(1);
            self.newline = false;
            return;
        }
        let run = std::mem::take(&mut self.run);
        if run > 0 {
            self.end_run(run);
        }
        let is_paragraph_end = c == '\n' && self.newline;
        self.newline = c == '\n' || (self.newline && c.is_whitespace());
        if is_paragraph_end && self.open < 3 {
            self.open = 0;
        }
    }

    fn end_run(&mut self, run: usize) {
        if self.open == 0 {
            self.open = run;
        } else if self.open == run || (self.open >= 3 && run >= self.open) {
            self.open = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The characters inside code.
    fn inside(text: &str) -> String {
        let mut code = Code::default();
        let is_inside = |c: &char| {
            code.take(*c);
            code.is_open() && *c != '`'
        };
        text.chars().filter(is_inside).collect()
    }

    #[test]
    fn code_stands_between_equal_runs_of_backticks() {
        assert_eq!(inside("a `b` c ``d`e`` f"), "bde");
        assert_eq!(inside("```x\ny\n\nz\n``` end"), "x\ny\n\nz\n");
    }

    #[test]
    fn inline_code_ends_with_its_paragraph() {
        assert_eq!(inside("it`s so\n \nand so"), "s so\n ");
    }
}

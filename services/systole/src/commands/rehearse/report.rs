//! What `rehearse` prints.

use std::io::{self, IsTerminal};
use std::path::Path;

use rehearsal::case::Case;
use rehearsal::compare::{Happened, Line};
use serde_json::{Value, json};

use super::find::Rehearsed;
use crate::commands::{Context, print};
use crate::failure::{Exit, Failure};
use crate::screen::canvas::page;
use crate::screen::style::{Palette, Tone};
use crate::screen::summary::counted;
use crate::screen::text::{clean, hanging, one_line};

/// Counts, and tells each case as it ends.
pub(super) struct Report<'a> {
    context: &'a Context,
    json: bool,
    agent: &'a Path,
    palette: Palette,
    passed: usize,
    differing: usize,
}

impl<'a> Report<'a> {
    pub(super) fn new(context: &'a Context, json: bool, agent: &'a Path) -> Self {
        Self { context, json, agent, palette: context.palette(), passed: 0, differing: 0 }
    }

    /// On a terminal the case that runs is named until it ends.
    pub(super) fn begins(&self, case: &Case) -> Result<(), Failure> {
        if self.json
            || !io::stdout().is_terminal()
            || !self.context.environment.has_smart_terminal()
        {
            return Ok(());
        }
        print(&self.palette.paint(Tone::Faint, &format!("  … {}\r", one_line(&case.name))))
    }

    /// One case is over.
    pub(super) fn ended(
        &mut self,
        rehearsed: &Rehearsed,
        happened: &Happened,
        difference: &[Line],
    ) -> Result<(), Failure> {
        if difference.is_empty() {
            self.passed = self.passed.saturating_add(1);
        } else {
            self.differing = self.differing.saturating_add(1);
        }
        if self.json {
            return print(&format!("{}\n", as_json(rehearsed, happened, difference)));
        }
        print(&self.as_text(rehearsed, happened, difference))
    }

    fn as_text(&self, rehearsed: &Rehearsed, happened: &Happened, lines: &[Line]) -> String {
        let name = one_line(&rehearsed.case.name);
        if lines.is_empty() {
            let glyph = self.palette.paint(Tone::Good, "✓");
            let calls = u64::try_from(happened.calls.len()).unwrap_or(u64::MAX);
            let turns = counted(u64::from(happened.turns), "turn");
            let facts = format!("{turns}, {}", counted(calls, "call"));
            let line = hanging(&format!("  ✓ {name}  {facts}"), page(), 4).join("\n");
            return line.replacen('✓', &glyph, 1) + "\n";
        }
        let glyph = self.palette.paint(Tone::Bad, "✗");
        let place = format!("{}:{}", rehearsed.file, rehearsed.case.line);
        let head = format!("  {glyph} {name}  {}\n", self.palette.paint(Tone::Faint, &place));
        let shown = lines.iter().map(|line| {
            let (tone, mark, words) = match line {
                Line::Same(words) => (Tone::Faint, ' ', words),
                Line::Missing(words) => (Tone::Bad, '-', words),
                Line::Unexpected(words) => (Tone::Good, '+', words),
            };
            let line = self.palette.paint(tone, &format!("{mark} {}", clean(words)));
            format!("      {line}\n")
        });
        std::iter::once(head).chain(shown).collect()
    }

    /// All are over.
    pub(super) fn closes(self) -> Result<Exit, Failure> {
        let exit = if self.differing == 0 { Exit::Done } else { Exit::Failed };
        if self.json {
            return Ok(exit);
        }
        let (passed, all) = (self.passed, self.passed.saturating_add(self.differing));
        let agent = self.agent.display();
        let tone = if self.differing == 0 { Tone::Good } else { Tone::Bad };
        let words = self.palette.paint(tone, &format!("{passed} of {all} cases as expected"));
        let next =
            "  - was expected, + happened; mend the agent, its rehearsal or the case's `expect`\n";
        let next = if self.differing > 0 { next } else { "" };
        let text = format!("{words}  {agent}\n{next}");
        print(&text)?;
        Ok(exit)
    }
}

fn as_json(rehearsed: &Rehearsed, happened: &Happened, difference: &[Line]) -> Value {
    let line = |line: &Line| match line {
        Line::Same(words) => json!({"same": words}),
        Line::Missing(words) => json!({"expected": words}),
        Line::Unexpected(words) => json!({"happened": words}),
    };
    let calls: Vec<Value> = happened
        .calls
        .iter()
        .map(|call| json!({"tool": call.tool, "arguments": call.arguments, "code": call.code}))
        .collect();
    json!({
        "case": rehearsed.case.name,
        "file": rehearsed.file,
        "line": rehearsed.case.line,
        "passed": difference.is_empty(),
        "difference": difference.iter().map(line).collect::<Vec<Value>>(),
        "outcome": happened.outcome,
        "code": happened.code,
        "turns": happened.turns,
        "calls": calls,
        "answer": happened.answer,
    })
}

//! The closing lines of a run.

use std::time::Duration;

use proto::event::Event;
use proto::fact::{EndReason, Outcome, Usage, Verification};

use super::call_line::span;
use super::style::{Palette, Tone};
use super::text::{columns, cut, wrap};

/// Outcome, turns, calls, tokens, money and time: in one line, or in several of at most `width`.
pub(crate) fn lines(
    finished: &Event,
    took: Option<Duration>,
    width: usize,
    palette: Palette,
) -> Vec<String> {
    let Event::RunFinished { unevaluated, verification, .. } = finished else {
        return Vec::new();
    };
    let mut lines = counts(finished, took, width, palette);
    let verified = verification.as_ref().map(verified_words).unwrap_or_default();
    let verified = wrap(&verified, width.saturating_sub(2)).into_iter();
    let verified = verified.filter(|line| !line.is_empty()).map(|line| format!("  {line}"));
    lines.extend(verified.map(|line| palette.paint(Tone::Faint, &line)));
    if *unevaluated {
        let warning = wrap(UNEVALUATED, width.saturating_sub(4));
        let marks = std::iter::once("  ! ").chain(std::iter::repeat("    "));
        let warning = marks.zip(warning).map(|(mark, line)| format!("{mark}{line}"));
        lines.extend(warning.map(|line| palette.paint(Tone::Warm, &line)));
    }
    lines
}

/// What came of the answer's verification.
fn verified_words(verification: &Verification) -> String {
    match verification {
        Verification::Confirmed => "verified: the draft held".to_owned(),
        Verification::Revised { .. } => "verified: the draft was revised".to_owned(),
        Verification::Unfinished { because } => {
            format!("not verified to the end ({}): this is the draft", reason_words(*because))
        }
    }
}

/// What is said of an answer that does not hold what the agent's file promises.
const UNEVALUATED: &str = "the answer was not seen to meet the agent's output_schema";

fn counts(finished: &Event, took: Option<Duration>, width: usize, palette: Palette) -> Vec<String> {
    let Event::RunFinished { outcome, reason, code, turns, calls, usage, .. } = finished else {
        return Vec::new();
    };
    let (glyph, tone) = match outcome {
        Outcome::Answered => ("✓", Tone::Good),
        Outcome::Failed => ("✗", Tone::Bad),
        Outcome::Stopped => ("■", Tone::Warm),
    };
    let why = code
        .map_or_else(|| reason_words(*reason).to_owned(), |code| code.as_str().replace('_', " "));
    let mut facts = vec![counted(u64::from(*turns), "turn"), counted(u64::from(*calls), "call")];
    if usage.tokens() > 0 {
        facts.push(format!("{} tokens", grouped(usage.tokens())));
    }
    facts.extend(money(*usage));
    facts.extend(took.map(span));
    let why = if *outcome == Outcome::Answered { String::new() } else { format!(" ({why})") };
    let head = format!("{glyph} {}", outcome_word(*outcome));
    // No line ends within a fact.
    let kept: Vec<String> = facts.iter().map(|fact| fact.replace(' ', "\u{a0}")).collect();
    let (facts, kept) = (facts.join(" · "), kept.join("\u{a0}· "));
    let all = format!("{head}{why}  {facts}");
    if columns(&all) <= width {
        let head = palette.paint(tone, &head);
        return vec![format!("{head}{why}  {}", palette.paint(Tone::Faint, &facts))];
    }
    let first = palette.paint(tone, &cut(&format!("{head}{why}"), width));
    let rest = wrap(&kept, width.saturating_sub(2)).into_iter();
    let rest = rest.map(|line| line.replace('\u{a0}', " ").trim_end_matches(" ·").to_owned());
    let rest = rest.map(|line| palette.paint(Tone::Faint, &format!("  {line}")));
    std::iter::once(first).chain(rest).collect()
}

/// The word for an outcome.
pub(crate) fn outcome_word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Answered => "answered",
        Outcome::Failed => "failed",
        Outcome::Stopped => "stopped",
    }
}

fn reason_words(reason: EndReason) -> &'static str {
    match reason {
        EndReason::Answer => "the agent answered",
        EndReason::Confident => "the agent is sure",
        EndReason::NothingNew => "two turns brought nothing new",
        EndReason::UserEnded => "ended at your word",
        EndReason::MaxTurns => "turn limit",
        EndReason::MaxTokens => "token limit",
        EndReason::MaxMoney => "money limit",
        EndReason::MaxWallTime => "time limit",
        EndReason::MaxToolCalls => "tool-call limit",
        EndReason::Cancelled => "cancelled",
        EndReason::Error => "error",
    }
}

/// `1 call`, `2 calls`.
pub(crate) fn counted(number: u64, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

/// `12345` as `12,345`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        let left = digits.len().saturating_sub(index);
        if index > 0 && left.is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn money(usage: Usage) -> Option<String> {
    let micro = usage.micro_usd.filter(|micro| *micro > 0)?;
    Some(format!("${}.{:04}", micro / 1_000_000, (micro % 1_000_000) / 100))
}

#[cfg(test)]
mod tests {
    use proto::error_code::ErrorCode;

    use super::*;

    fn finished(outcome: Outcome, reason: EndReason, code: Option<ErrorCode>) -> Event {
        let usage =
            Usage { prompt_tokens: 12_000, completion_tokens: 345, micro_usd: Some(12_340) };
        let answer = "fixed".to_owned();
        let (turns, calls, unevaluated) = (1, 2, false);
        Event::RunFinished {
            run: 1,
            outcome,
            reason,
            code,
            answer,
            turns,
            calls,
            usage,
            unevaluated,
            verification: None,
        }
    }

    #[test]
    fn an_answer_that_breaks_its_schema_is_told() {
        let mut event = finished(Outcome::Answered, EndReason::Answer, None);
        if let Event::RunFinished { unevaluated, .. } = &mut event {
            *unevaluated = true;
        }
        let lines = lines(&event, None, 100, Palette::new(false));
        assert_eq!(
            lines.last().map(String::as_str),
            Some("  ! the answer was not seen to meet the agent's output_schema")
        );
    }

    #[test]
    fn a_summary_counts_everything_once() {
        let plain = Palette::new(false);
        let answered = finished(Outcome::Answered, EndReason::Answer, None);
        assert_eq!(
            lines(&answered, Some(Duration::from_millis(8300)), 100, plain),
            ["✓ answered  1 turn · 2 calls · 12,345 tokens · $0.0123 · 8.3 s"]
        );
        let failed = finished(Outcome::Failed, EndReason::Error, Some(ErrorCode::ModelUnavailable));
        assert_eq!(
            lines(&failed, None, 100, plain),
            ["✗ failed (model unavailable)  1 turn · 2 calls · 12,345 tokens · $0.0123"]
        );
        let stopped = finished(Outcome::Stopped, EndReason::MaxTurns, None);
        assert_eq!(
            lines(&stopped, None, 30, plain),
            ["■ stopped (turn limit)", "  1 turn · 2 calls", "  12,345 tokens · $0.0123"]
        );
    }

    #[test]
    fn digits_are_grouped_by_three() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}

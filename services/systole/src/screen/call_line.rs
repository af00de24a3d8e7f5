//! A tool call in one line: glyph, name, arguments, state and time, and what came of it.

use std::time::Duration;

use proto::error_code::ErrorCode;
use proto::hash::canonical;
use proto::observation::Receipt;
use proto::tool::Effect;
use serde_json::{Map, Value};

use super::style::{Palette, Tone};
use super::text::{clean, columns, cut, one_line};

/// A call as far as it is known.
#[derive(Clone, Debug)]
pub(crate) struct CallShown {
    pub(crate) tool: String,
    pub(crate) arguments: String,
    pub(crate) effect: Option<Effect>,
}

/// How a call stands.
#[derive(Clone, Debug)]
pub(crate) enum Standing {
    /// It was sent.
    Sent,
    /// It runs.
    Running { frame: usize, since: Duration },
    /// It was answered.
    Answered {
        code: Option<ErrorCode>,
        receipt: Option<Receipt>,
        took: Option<Duration>,
        content: String,
    },
}

/// The longest line of an observation.
const LONGEST_OUTCOME: usize = 4000;

const FRAMES: [&str; 8] = ["⣾", "⣽", "⣻", "⢿", "⡿", "⣟", "⣯", "⣷"];

impl CallShown {
    pub(crate) fn new(tool: &str, arguments: &Map<String, Value>, effect: Option<Effect>) -> Self {
        Self { tool: one_line(tool), arguments: short_arguments(arguments), effect }
    }
}

/// Columns that one value may take.
const VALUE: usize = 40;

/// `name=value` pairs; JSON where a value is not a plain word.
fn short_arguments(arguments: &Map<String, Value>) -> String {
    let pair = |(name, value): (&String, &Value)| {
        let value = match value.as_str() {
            Some(text) if !text.is_empty() => one_line(text),
            Some(_) | None => one_line(&canonical(value)),
        };
        format!("{}={}", one_line(name), cut(&value, VALUE))
    };
    arguments.iter().map(pair).collect::<Vec<_>>().join(" ")
}

/// The line, at most `width` columns.
pub(crate) fn line(
    call: &CallShown,
    standing: &Standing,
    width: usize,
    palette: Palette,
) -> String {
    let (glyph, tone) = glyph(call, standing);
    let state = state(standing);
    let name = cut(&call.tool, width.saturating_sub(columns(&state)).saturating_sub(6));
    let fixed = [4, columns(&name), 2, columns(&state)].into_iter().sum::<usize>();
    let left = width.saturating_sub(fixed);
    let outcome = outcome(standing);
    let (arguments, outcome) = share(&call.arguments, &outcome, left);
    let mut line =
        format!("  {} {}", palette.paint(tone, glyph), palette.paint(Tone::Strong, &name));
    if !arguments.is_empty() {
        line.push(' ');
        line.push_str(&arguments);
    }
    line.push_str("  ");
    line.push_str(&palette.paint(if tone == Tone::Bad { Tone::Bad } else { Tone::Faint }, &state));
    if !outcome.is_empty() {
        line.push_str("  ");
        line.push_str(&palette.paint(Tone::Faint, &outcome));
    }
    line
}

/// Splits the columns that are left: arguments first, but at most half while there is an outcome.
fn share(arguments: &str, outcome: &str, left: usize) -> (String, String) {
    let wanted = columns(arguments).saturating_add(1);
    let half = left.div_ceil(2);
    let most =
        if outcome.is_empty() { left } else { left.saturating_sub(columns(outcome)).max(half) };
    let arguments =
        if most < 8 { String::new() } else { cut(arguments, wanted.min(most).saturating_sub(1)) };
    let used = if arguments.is_empty() { 0 } else { columns(&arguments).saturating_add(1) };
    let rest = left.saturating_sub(used).saturating_sub(2);
    let outcome = if rest < 8 { String::new() } else { cut(outcome, rest) };
    (arguments, outcome)
}

fn glyph(call: &CallShown, standing: &Standing) -> (&'static str, Tone) {
    match standing {
        Standing::Sent => ("→", Tone::Warm),
        Standing::Running { frame, .. } => {
            let tone =
                if call.effect.is_some_and(Effect::needs_start) { Tone::Bad } else { Tone::Warm };
            let frame = frame.checked_rem(FRAMES.len()).unwrap_or(0);
            (FRAMES.get(frame).copied().unwrap_or("·"), tone)
        }
        Standing::Answered { code: None, .. } => ("✓", Tone::Good),
        Standing::Answered { code: Some(ErrorCode::InDoubt), .. } => ("?", Tone::Bad),
        Standing::Answered { code: Some(_), .. } => ("✗", Tone::Bad),
    }
}

fn state(standing: &Standing) -> String {
    match standing {
        Standing::Sent => "running".to_owned(),
        Standing::Running { since, .. } => format!("running {}", span(*since)),
        Standing::Answered { code, receipt, took, .. } => {
            let word =
                code.map_or_else(|| "done".to_owned(), |code| code.as_str().replace('_', " "));
            let receipt = receipt.map(|receipt| format!(" ({})", receipt_words(receipt)));
            let took = took.map(|took| format!(" {}", span(took)));
            format!("{word}{}{}", receipt.unwrap_or_default(), took.unwrap_or_default())
        }
    }
}

/// What came of it in one line: of a failure the last line, where a traceback says what it is.
fn outcome(standing: &Standing) -> String {
    match standing {
        Standing::Sent | Standing::Running { .. } => String::new(),
        Standing::Answered { content, code, .. } => {
            let last = || content.lines().rev().find(|line| !line.trim().is_empty());
            let telling = if code.is_some() { last() } else { None };
            let telling = telling.unwrap_or(content);
            one_line(&telling.chars().take(LONGEST_OUTCOME).collect::<String>())
        }
    }
}

/// Something that is waited for, in a row that is drawn anew.
pub(crate) fn waiting(what: &str, frame: usize, since: Duration) -> String {
    let frame = frame.checked_rem(FRAMES.len()).and_then(|frame| FRAMES.get(frame));
    format!("  {} waiting for {what} {}", frame.unwrap_or(&"·"), span(since))
}

/// The call with the whole of what came of it, bounded: in the line if that is one, else below it.
pub(crate) fn block(
    call: &CallShown,
    standing: &Standing,
    most_lines: usize,
    palette: Palette,
) -> Vec<String> {
    let Standing::Answered { content, code, receipt, took } = standing else {
        return vec![line(call, standing, usize::MAX, palette)];
    };
    let text = clean(content);
    let all: Vec<&str> = text.trim_end().lines().collect();
    if all.len() < 2 {
        return vec![line(call, standing, usize::MAX, palette)];
    }
    let (content, receipt) = (String::new(), *receipt);
    let head = Standing::Answered { content, code: *code, receipt, took: *took };
    let mut lines = vec![line(call, &head, usize::MAX, palette)];
    let shown = all.iter().take(most_lines).map(|line| cut(line, LONGEST_OUTCOME));
    lines.extend(shown.map(|line| palette.paint(Tone::Faint, &format!("      {line}"))));
    let more = all.len().saturating_sub(most_lines);
    if more > 0 {
        let words = format!("      … {more} more; `systole show` has them");
        lines.push(palette.paint(Tone::Faint, &words));
    }
    lines
}

/// How far a call had come, in words.
pub(crate) fn receipt_words(receipt: Receipt) -> &'static str {
    match receipt {
        Receipt::NeverStarted => "never started",
        Receipt::StoppedBeforeEffect => "stopped before its effect",
        Receipt::StoppedAfterEffectBegan => "stopped after its effect began",
        Receipt::Completed => "had completed",
        Receipt::Unknown => "how far is unknown",
    }
}

/// A span for people.
pub(crate) fn span(span: Duration) -> String {
    let millis = span.as_millis();
    if millis < 1000 {
        format!("{millis} ms")
    } else if millis < 60_000 {
        format!("{}.{} s", millis / 1000, (millis % 1000) / 100)
    } else {
        format!("{} min {} s", millis / 60_000, (millis % 60_000) / 1000)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn restart() -> CallShown {
        let arguments = json!({"service": "checkout", "force": true});
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        CallShown::new("restart_service", &arguments, Some(Effect::Irreversible))
    }

    fn done(content: &str) -> Standing {
        Standing::Answered {
            code: None,
            receipt: None,
            took: Some(Duration::from_millis(1234)),
            content: content.to_owned(),
        }
    }

    #[test]
    fn a_line_tells_name_arguments_state_time_and_outcome() {
        let plain = Palette::new(false);
        assert_eq!(
            line(&restart(), &done("{\"restarted\": true}"), 100, plain),
            "  ✓ restart_service force=true service=checkout  done 1.2 s  {\"restarted\": true}"
        );
        assert_eq!(
            line(&restart(), &Standing::Sent, 100, plain),
            "  → restart_service force=true service=checkout  running"
        );
    }

    #[test]
    fn a_narrow_line_keeps_name_state_and_time() {
        let plain = Palette::new(false);
        let shown = line(&restart(), &done("{\"restarted\": true}"), 39, plain);
        assert_eq!(shown, "  ✓ restart_service  done 1.2 s");
    }

    #[test]
    fn no_line_is_wider_than_it_may_be() {
        let plain = Palette::new(false);
        let failed = Standing::Answered {
            code: Some(ErrorCode::InDoubt),
            receipt: Some(Receipt::StoppedAfterEffectBegan),
            took: Some(Duration::from_secs(100)),
            content: "日本語 ".repeat(60),
        };
        for width in 60..200 {
            for standing in [done(&"long words ".repeat(40)), failed.clone(), Standing::Sent] {
                let shown = line(&restart(), &standing, width, plain);
                assert!(columns(&shown) <= width, "{width}: {shown}");
            }
        }
    }

    #[test]
    fn of_a_traceback_the_last_line_is_told_where_there_is_only_one() {
        let content =
            "exit code 1\nTraceback (most recent call last):\n  File \"a.py\"\nKeyError: 'x'\n";
        let failed = Standing::Answered {
            code: Some(ErrorCode::ToolFailed),
            receipt: None,
            took: None,
            content: content.to_owned(),
        };
        let plain = Palette::new(false);
        assert!(line(&restart(), &failed, 100, plain).ends_with("tool failed  KeyError: 'x'"));
        assert_eq!(
            block(&restart(), &failed, 3, plain),
            [
                "  ✗ restart_service force=true service=checkout  tool failed",
                "      exit code 1",
                "      Traceback (most recent call last):",
                "        File \"a.py\"",
                "      … 1 more; `systole show` has them",
            ]
        );
        let long = "word ".repeat(200);
        assert!(block(&restart(), &done(&long), 3, plain)[0].ends_with(long.trim_end()));
    }

    #[test]
    fn a_failure_names_its_code_and_receipt() {
        let failed = Standing::Answered {
            code: Some(ErrorCode::Cancelled),
            receipt: Some(Receipt::NeverStarted),
            took: None,
            content: String::new(),
        };
        assert_eq!(
            line(&restart(), &failed, 100, Palette::new(false)),
            "  ✗ restart_service force=true service=checkout  cancelled (never started)"
        );
    }

    #[test]
    fn spans_are_told_as_people_say_them() {
        let told = [999, 1000, 59_999, 61_000].map(|ms| span(Duration::from_millis(ms)));
        assert_eq!(told, ["999 ms", "1.0 s", "59.9 s", "1 min 1 s"]);
    }
}

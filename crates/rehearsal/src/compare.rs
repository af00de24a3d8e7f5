//! What was expected of a case beside what happened.

use serde_json::{Map, Value};

use crate::case::{Expect, ExpectedCall};
use crate::heard;
use crate::matcher::{Matcher, text_of};

/// Characters of a value that are shown.
const SHOWN: usize = 100;
/// Characters shown in front of a difference.
const BEFORE: usize = 30;

/// What happened.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Happened {
    /// How the run ended: `answered`, `failed`, `stopped`.
    pub outcome: String,
    /// The run's error code.
    pub code: Option<String>,
    /// Turns made.
    pub turns: u32,
    /// Calls in the order in which the model asked for them.
    pub calls: Vec<MadeCall>,
    /// The answer, or the words that the run ended with.
    pub answer: String,
}

/// A call that was made.
#[derive(Clone, Debug, PartialEq)]
pub struct MadeCall {
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: Map<String, Value>,
    /// The code of its observation; absent on success.
    pub code: Option<String>,
}

/// A line of the difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// As expected; stands here so that the others have a place.
    Same(String),
    /// Expected and not there.
    Missing(String),
    /// There and not expected.
    Unexpected(String),
}

/// The difference; nothing when all is as expected.
pub fn compare(expect: &Expect, happened: &Happened) -> Vec<Line> {
    let mut lines = Vec::new();
    if expect.outcome != happened.outcome {
        lines.push(Line::Missing(format!("outcome: {}", expect.outcome)));
        let code = happened.code.as_ref().map_or_else(String::new, |code| format!(" ({code})"));
        lines.push(Line::Unexpected(format!("outcome: {}{code}", happened.outcome)));
        if expect.answer.is_empty() {
            // Whole: it says why.
            lines.push(Line::Unexpected(format!(
                "answer: {}",
                Value::from(happened.answer.as_str())
            )));
        }
    }
    if expect.code.is_some() && expect.code != happened.code {
        let word = |code: &Option<String>| code.clone().unwrap_or_else(|| "none".to_owned());
        lines.push(Line::Missing(format!("code: {}", word(&expect.code))));
        lines.push(Line::Unexpected(format!("code: {}", word(&happened.code))));
    }
    test(&mut lines, "turns", &expect.turns, &Value::from(happened.turns));
    if let Some(calls) = &expect.calls {
        lines.extend(compare_calls(calls, &happened.calls));
    }
    test(&mut lines, "answer", &expect.answer, &Value::from(happened.answer.trim_end()));
    lines
}

fn test(lines: &mut Vec<Line>, name: &str, tests: &[Matcher], value: &Value) {
    let passes = |test: &&Matcher| {
        // A block of YAML text ends with a line feed that nobody means.
        if let Matcher::Equals(Value::String(wanted)) = test
            && value.as_str() == Some(wanted.trim_end())
        {
            return true;
        }
        test.accepts(Some(value))
    };
    for failed in tests.iter().filter(|test| !passes(test)) {
        let at = failed.place_of_difference(value);
        lines.push(Line::Missing(format!("{name} {}", failed.words(at))));
        lines.push(Line::Unexpected(format!("{name} is {}", shown(&text_of(value), at))));
    }
}

/// Calls side by side: the longest common list of tools stays in place.
fn compare_calls(expected: &[ExpectedCall], made: &[MadeCall]) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut differs = false;
    let (mut at, mut next) = (0, 0);
    let pairs = pairs(expected, made);
    for (left, right) in pairs.iter().copied().chain([(expected.len(), made.len())]) {
        for call in expected.get(at..left).unwrap_or_default() {
            lines.push(Line::Missing(format!("call {}{}", call.tool, tests_of(call))));
            differs = true;
        }
        for call in made.get(next..right).unwrap_or_default() {
            lines.push(Line::Unexpected(format!("call {}", told(call))));
            differs = true;
        }
        if let (Some(wanted), Some(call)) = (expected.get(left), made.get(right)) {
            lines.push(Line::Same(format!("call {}", call.tool)));
            let inner = compare_call(wanted, call);
            differs |= !inner.is_empty();
            lines.extend(inner);
        }
        (at, next) = (left.saturating_add(1), right.saturating_add(1));
    }
    if differs { lines } else { Vec::new() }
}

fn compare_call(expected: &ExpectedCall, made: &MadeCall) -> Vec<Line> {
    let mut lines = Vec::new();
    let arguments = Value::Object(made.arguments.clone());
    for (path, wanted) in &expected.arguments {
        let value = value_at(&arguments, path);
        if !wanted.accepts(value) {
            let at = value.map_or(0, |value| wanted.place_of_difference(value));
            lines.push(Line::Missing(format!("  {path} {}", wanted.words(at))));
            let is = value.map_or_else(
                || "is absent".to_owned(),
                |value| format!("is {}", shown(&text_of(value), at)),
            );
            lines.push(Line::Unexpected(format!("  {path} {is}")));
        }
    }
    let code = made.code.as_deref().unwrap_or("ok");
    if let Some(wanted) = expected.code.as_ref().filter(|wanted| *wanted != code) {
        lines.push(Line::Missing(format!("  observation: {wanted}")));
        lines.push(Line::Unexpected(format!("  observation: {code}")));
    }
    lines
}

/// Indices of calls of the same tool, in order, as many as possible.
fn pairs(expected: &[ExpectedCall], made: &[MadeCall]) -> Vec<(usize, usize)> {
    let rows = expected.len().saturating_add(1);
    let columns = made.len().saturating_add(1);
    let mut best = vec![vec![0_usize; columns]; rows];
    let value = |best: &[Vec<usize>], row: usize, column: usize| {
        best.get(row).and_then(|row| row.get(column)).copied().unwrap_or(0)
    };
    for (row, wanted) in expected.iter().enumerate().rev() {
        for (column, call) in made.iter().enumerate().rev() {
            let longest = if wanted.tool == call.tool {
                value(&best, row + 1, column + 1).saturating_add(1)
            } else {
                value(&best, row + 1, column).max(value(&best, row, column + 1))
            };
            if let Some(cell) = best.get_mut(row).and_then(|row| row.get_mut(column)) {
                *cell = longest;
            }
        }
    }
    let (mut row, mut column, mut pairs) = (0, 0, Vec::new());
    while let (Some(wanted), Some(call)) = (expected.get(row), made.get(column)) {
        if wanted.tool == call.tool {
            pairs.push((row, column));
            (row, column) = (row + 1, column + 1);
        } else if value(&best, row + 1, column) >= value(&best, row, column + 1) {
            row += 1;
        } else {
            column += 1;
        }
    }
    pairs
}

fn tests_of(call: &ExpectedCall) -> String {
    let tests = call.arguments.iter().map(|(path, test)| format!("{path} {}", test.words(0)));
    let tests: Vec<String> = tests.collect();
    if tests.is_empty() { String::new() } else { format!(" with {}", tests.join(", ")) }
}

fn told(call: &MadeCall) -> String {
    let arguments = call.arguments.iter();
    let arguments = arguments.map(|(name, value)| format!("{name} {}", shown(&text_of(value), 0)));
    let arguments: Vec<String> = arguments.collect();
    let with = if arguments.is_empty() { "" } else { " with " };
    format!("{}{with}{}", call.tool, arguments.join(", "))
}

/// A value by name, or by dotted path where no name is like that.
pub(crate) fn value_at<'v>(arguments: &'v Value, path: &str) -> Option<&'v Value> {
    arguments.get(path).or_else(|| heard::at_path(arguments, path))
}

/// A text in quotes on one line, from shortly before `from`.
pub(crate) fn shown(text: &str, from: usize) -> String {
    let skipped = from.saturating_sub(BEFORE);
    let part: String = text.chars().skip(skipped).take(SHOWN).collect();
    let rest = text.chars().count().saturating_sub(skipped).saturating_sub(SHOWN);
    let before = if skipped > 0 { "… " } else { "" };
    let after = if rest > 0 { " …" } else { "" };
    format!("{before}{}{after}", Value::from(part))
}

/// Where two texts begin to differ, in characters.
pub(crate) fn difference(one: &str, other: &str) -> usize {
    one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect as Text, expect};
    use serde_json::json;

    use super::*;
    use crate::case::Sheet;

    fn made(tool: &str, arguments: Value) -> MadeCall {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        MadeCall { tool: tool.to_owned(), arguments, code: None }
    }

    fn happened() -> Happened {
        Happened {
            outcome: "answered".to_owned(),
            code: None,
            turns: 3,
            calls: vec![
                made("probe", json!({})),
                made("read_log", json!({"lines": 20})),
                made("restart", json!({"reason": "High error rate since noon"})),
            ],
            answer: "It is fixed.".to_owned(),
        }
    }

    fn check(expected: &str, happened: &Happened, difference: &Text) {
        let text = format!("cases:\n  - name: a\n    input: go\n    expect: {expected}\n");
        let sheet = Sheet::parse("cases.yaml", &text).unwrap();
        let lines = compare(&sheet.cases[0].expect, happened).into_iter().map(|line| match line {
            Line::Same(text) => format!("  {text}\n"),
            Line::Missing(text) => format!("- {text}\n"),
            Line::Unexpected(text) => format!("+ {text}\n"),
        });
        difference.assert_eq(&lines.collect::<String>());
    }

    #[test]
    fn what_is_as_expected_is_not_told() {
        check(
            "{ turns: 3, calls: [probe, read_log, { tool: restart, arguments: { reason: { matches: High } } }], answer: { matches: fixed } }",
            &happened(),
            &expect![""],
        );
        check("{}", &happened(), &expect![""]);
    }

    #[test]
    fn another_order_is_told_with_what_stayed() {
        check(
            "{ calls: [read_log, probe, restart] }",
            &happened(),
            &expect![[r#"
                - call read_log
                  call probe
                + call read_log with lines "20"
                  call restart
            "#]],
        );
    }

    #[test]
    fn another_argument_and_another_code_are_told_below_their_call() {
        let mut failed = happened();
        failed.calls[1].code = Some("tool_failed".to_owned());
        check(
            "{ calls: [probe, { tool: read_log, code: ok, arguments: { lines: 10, from: { exists: true } } }, restart] }",
            &failed,
            &expect![[r#"
                  call probe
                  call read_log
                -   lines equals "10"
                +   lines is "20"
                -   from is there
                +   from is absent
                -   observation: ok
                +   observation: tool_failed
                  call restart
            "#]],
        );
    }

    #[test]
    fn another_end_is_told_with_its_words() {
        let mut failed = happened();
        failed.outcome = "failed".to_owned();
        failed.code = Some("model_refused".to_owned());
        failed.answer = "no rule of the rehearsal fits: turn 2".to_owned();
        check(
            "{}",
            &failed,
            &expect![[r#"
                - outcome: answered
                + outcome: failed (model_refused)
                + answer: "no rule of the rehearsal fits: turn 2"
            "#]],
        );
    }

    #[test]
    fn a_long_text_is_shown_where_it_differs() {
        let mut long = happened();
        long.answer = format!("{} it is not.", "and so on, ".repeat(40));
        let wanted = format!("{} it is.", "and so on, ".repeat(40));
        check(
            &format!("{{ answer: '{wanted}' }}"),
            &long,
            &expect![[r#"
                - answer equals … ", and so on, and so on,  it is."
                + answer is … ", and so on, and so on,  it is not."
            "#]],
        );
    }
}

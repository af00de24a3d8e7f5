//! What a tool wrote, as a model can read it: valid text, without secrets, within its budget.

mod bidi; // directions that stay open
mod cut; // where a text may be cut
mod form; // what a tool's file wants to see

use crate::redact::Redactor;

pub use form::{Form, Part};

/// Characters that a token stands for, roughly.
const CHARS_PER_TOKEN: usize = 4;
/// Longer texts do not go into a message, whatever the budget.
const MOST_BYTES: usize = 48 * 1024;
/// A line that is repeated from the part left out is cut to this.
const ERROR_LINE: usize = 240;

/// What a tool wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raw<'a> {
    /// What was kept of it.
    pub bytes: &'a [u8],
    /// How many bytes there were in all.
    pub total: u64,
}

/// What leaves the worker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shaped {
    /// What the model reads.
    pub content: String,
    /// All of the text, redacted, when the content is only a part of it.
    pub full: Option<String>,
}

/// Shapes an output to a budget of tokens, in the form that is wanted where it is too long.
pub fn shape(raw: Raw<'_>, redactor: &Redactor, budget_tokens: u32, form: &Form) -> Shaped {
    let (text, broken) = readable(raw);
    let text = redactor.redact(&text);
    let tokens = usize::try_from(budget_tokens).unwrap_or(usize::MAX);
    let most = tokens.saturating_mul(CHARS_PER_TOKEN).min(MOST_BYTES);
    let notes = notes(raw, broken);
    if text.len() <= most {
        return Shaped { content: joined(&notes, &bidi::closed(&text)), full: None };
    }
    let content = match form.chosen(&text) {
        Some(chosen) => {
            let errors = told_errors(&chosen.left_out, most / 4);
            let room = most.saturating_sub(errors.len());
            format!("{errors}{}", fitted(&chosen.text, room, form.part))
        }
        None => fitted(&text, most, form.part),
    };
    Shaped { content: joined(&notes, &content), full: Some(text) }
}

/// An answer's own words before the tool's output.
pub fn compose(words: &str, output: &str) -> String {
    match (words.is_empty(), output.is_empty()) {
        (true, true) => "The tool ended well and wrote nothing.".to_owned(),
        (true, false) => output.to_owned(),
        (false, true) => words.to_owned(),
        (false, false) => format!("{words}\n{output}"),
    }
}

/// A text that fits a message beside everything else that a record carries.
pub fn within_message(text: &str) -> String {
    within(text, MOST_BYTES.saturating_add(MOST_BYTES / 4))
}

/// A text of about so many bytes at most, which says so when it was longer.
pub fn within(text: &str, most: usize) -> String {
    let (kept, rest) = cut::head(text, most);
    if rest.is_empty() {
        return text.to_owned();
    }
    format!("{}\n[... the rest is left out ...]", bidi::closed(kept))
}

fn joined(notes: &str, text: &str) -> String {
    if notes.is_empty() { text.to_owned() } else { format!("{notes}\n{text}") }
}

/// Text out of bytes, without control characters; and how many places were no text.
fn readable(raw: Raw<'_>) -> (String, usize) {
    let mut text = String::with_capacity(raw.bytes.len());
    let mut broken = 0;
    for chunk in raw.bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
            broken += 1;
        }
    }
    (plain(&text), broken)
}

/// Terminal codes and other control characters mean nothing to a model.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(c) = letters.next() {
        if c == '\u{1b}' && letters.next_if_eq(&'[').is_some() {
            while letters.next_if(|c| (' '..='?').contains(c)).is_some() {}
            letters.next_if(|c| ('@'..='~').contains(c));
        } else if c == '\n' || c == '\t' || !c.is_control() {
            plain.push(c);
        }
    }
    plain
}

fn notes(raw: Raw<'_>, broken: usize) -> String {
    let mut notes = Vec::new();
    let kept = u64::try_from(raw.bytes.len()).unwrap_or(u64::MAX);
    if raw.total > kept {
        notes.push(format!("[The tool wrote {} bytes; {kept} of them were kept.]", raw.total));
    }
    if broken > 0 {
        let mark = char::REPLACEMENT_CHARACTER;
        notes.push(format!("[{broken} places were not valid UTF-8 and are shown as {mark}.]"));
    }
    notes.join("\n")
}

fn fitted(text: &str, most: usize, part: Part) -> String {
    if text.len() <= most { bidi::closed(text) } else { excerpt(text, most, part) }
}

/// Error lines of the part left out, then what is kept of the ends; about `most` bytes.
fn excerpt(text: &str, most: usize, part: Part) -> String {
    let ends = most.saturating_mul(3) / 4;
    let (first, last) = match part {
        Part::Both => (ends / 2, ends / 2),
        Part::Head => (ends, 0),
        Part::Tail => (0, ends),
    };
    let (head, rest) = cut::head(text, first);
    let (middle, tail) = cut::tail(rest, last);
    let all = text.chars().count();
    let out = middle.chars().count();
    let mut parts = vec![told_errors(middle, most / 4), bidi::closed(head)];
    let before = if head.is_empty() { "" } else { "\n" };
    parts.push(format!("{before}[... {out} of {all} characters left out ...]\n"));
    parts.push(bidi::closed(tail));
    parts.concat()
}

/// What a part that is left out says of errors.
fn told_errors(left_out: &str, most: usize) -> String {
    let errors = error_lines(left_out, most);
    if errors.is_empty() {
        return errors;
    }
    format!("[Lines about errors from the part left out:]\n{errors}\n")
}

/// The first lines of `text` that speak of errors, together at most `most` bytes.
fn error_lines(text: &str, most: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut used = 0_usize;
    for line in text.lines().filter(|line| speaks_of_error(line)) {
        let (line, _) = cut::head(line, ERROR_LINE);
        used = used.saturating_add(line.len()).saturating_add(1);
        if used > most {
            break;
        }
        lines.push(bidi::closed(line));
    }
    lines.join("\n")
}

fn speaks_of_error(line: &str) -> bool {
    const WORDS: [&str; 9] = [
        "error",
        "fail",
        "fatal",
        "panic",
        "exception",
        "traceback",
        "denied",
        "refused",
        "critical",
    ];
    let (start, _) = cut::head(line, 2_000);
    let lower = start.to_ascii_lowercase();
    WORDS.iter().any(|word| lower.contains(word))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    fn shaped(bytes: &[u8], tokens: u32) -> Shaped {
        let total = u64::try_from(bytes.len()).unwrap();
        shape(Raw { bytes, total }, &Redactor::standard(), tokens, &Form::default())
    }

    fn check(bytes: &[u8], tokens: u32, expected: &Expect) {
        expected.assert_eq(&shaped(bytes, tokens).content);
    }

    #[test]
    fn the_end_that_is_wanted_is_kept_and_errors_are_told_all_the_same() {
        let text: String = (0..200)
            .map(|line| if line == 100 { "error 100\n".into() } else { format!("{line}\n") })
            .collect();
        let raw = Raw { bytes: text.as_bytes(), total: 0 };
        let of = |part| {
            let form = Form { part, ..Form::default() };
            shape(raw, &Redactor::standard(), 30, &form).content
        };
        let (head, tail) = (of(Part::Head), of(Part::Tail));
        assert!(head.contains("\n0\n1\n") && !head.contains("199"), "{head}");
        assert!(tail.ends_with("198\n199\n") && !tail.contains("\n0\n"), "{tail}");
        for told in [&head, &tail] {
            assert!(told.contains("error 100") && told.len() < 200, "{told}");
        }
        let form = Form { rows: Some(3), ..Form::default() };
        let rows = shape(raw, &Redactor::standard(), 30, &form).content;
        assert!(rows.contains("error 100") && rows.ends_with("0\n99\n199"), "{rows}");
    }

    #[test]
    fn a_short_result_stays_as_it_is() {
        let expected = Shaped { content: "active\n".into(), full: None };
        assert_eq!(shaped(b"active\n", 300), expected);
    }

    #[test]
    fn a_long_result_keeps_its_ends_and_its_errors() {
        let line = |number| {
            let word = if number == 77 { "ERROR disk full" } else { "ok" };
            format!("{number} {word}\n")
        };
        let text: String = (0..200).map(line).collect();
        check(
            text.as_bytes(),
            30,
            &expect![[r"
                [Lines about errors from the part left out:]
                77 ERROR disk full
                0 ok
                1 ok
                2 ok
                3 ok
                4 ok
                5 ok
                6 ok
                7 ok
                8 ok

                [... 1216 of 1303 characters left out ...]
                194 ok
                195 ok
                196 ok
                197 ok
                198 ok
                199 ok
            "]],
        );
        assert_eq!(shaped(text.as_bytes(), 30).full, Some(text));
    }

    #[test]
    fn bytes_that_are_no_text_are_shown_and_said() {
        check(
            b"a\xff\xfeb \xf0\x9f\x98",
            300,
            &expect![[r"
                [3 places were not valid UTF-8 and are shown as �.]
                a��b �"]],
        );
    }

    #[test]
    fn a_flood_says_how_much_there_was() {
        let raw = Raw { bytes: b"aaaa", total: 1_073_741_824 };
        expect![[r"
            [The tool wrote 1073741824 bytes; 4 of them were kept.]
            aaaa"]]
        .assert_eq(&shape(raw, &Redactor::standard(), 300, &Form::default()).content);
    }

    #[test]
    fn terminal_codes_are_left_out() {
        check(b"\x1b[31mred\x1b[0m\r\n\0", 300, &expect![["red\n"]]);
    }

    #[test]
    fn a_secret_at_the_cut_does_not_survive_in_part() {
        let secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
        for before in 0..80 {
            let text = format!("{} {secret} {}", "x".repeat(before), "y".repeat(400));
            let content = shaped(text.as_bytes(), 25).content;
            assert!(!content.contains("ghp_") && !content.contains("0123456789"), "{content}");
        }
    }

    #[test]
    fn an_answer_without_words_and_output_says_so() {
        expect!["The tool ended well and wrote nothing."].assert_eq(&compose("", ""));
    }

    #[test]
    fn an_answer_of_any_length_fits_a_message() {
        let fitted = within_message(&"é".repeat(100_000));
        assert_eq!((fitted.len() < 64 * 1024, fitted.ends_with("left out ...]")), (true, true));
        assert_eq!(within_message("short"), "short");
    }

    /// Whether every direction that the text opens is closed again.
    fn is_closed(text: &str) -> bool {
        bidi::closed(text) == text
    }

    proptest! {
        #[test]
        fn no_bytes_and_no_budget_break_it(
            bytes in prop::collection::vec(any::<u8>(), 0..600), tokens in 0..80_u32,
        ) {
            let shaped = shaped(&bytes, tokens);
            prop_assert!(is_closed(&shaped.content));
            prop_assert!(shaped.content.len() <= usize::try_from(tokens).unwrap() * 4 + 250);
        }

        #[test]
        fn strange_letters_are_never_torn(
            parts in prop::collection::vec(prop::sample::select(vec![
                "a", "é", "e\u{301}", "👨\u{200d}👩\u{200d}👧", "🇩🇪", "👍🏽", "\u{202e}x", "\u{2067}", "\u{2069}",
                r"\ud83d\ude00", r"\u00e9", r"\n", "\n", "ש",
            ]), 0..200),
            tokens in 1..40_u32,
        ) {
            let text = parts.concat();
            let shaped = shaped(text.as_bytes(), tokens);
            prop_assert!(is_closed(&shaped.content));
            prop_assert_eq!(shaped.full.is_some(), shaped.content.contains("left out"));
        }
    }
}

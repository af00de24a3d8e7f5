//! Where a text may be cut: never inside a character, a character sequence that shows as one, or an
//! escape such as `\ud83d\ude00`, and at the end of a line when one is near.

/// Longer sequences that show as one character are cut after all.
const PATIENCE: usize = 64;

/// The longest fitting start of at most `most` bytes, and the rest.
pub(super) fn head(text: &str, most: usize) -> (&str, &str) {
    if text.len() <= most {
        return (text, "");
    }
    let at = whole_before(text, most);
    let near =
        text.get(..at).and_then(|start| start.rfind('\n')).map(|line| line.saturating_add(1));
    split(text, near.filter(|line| line.saturating_mul(4) >= most.saturating_mul(3)).unwrap_or(at))
}

/// The rest, and the longest fitting end of at most `most` bytes.
pub(super) fn tail(text: &str, most: usize) -> (&str, &str) {
    if text.len() <= most {
        return ("", text);
    }
    let at = whole_after(text, text.len().saturating_sub(most));
    let near = text
        .get(at..)
        .and_then(|end| end.find('\n'))
        .map(|line| at.saturating_add(line).saturating_add(1));
    let kept =
        |line: &usize| text.len().saturating_sub(*line).saturating_mul(4) >= most.saturating_mul(3);
    split(text, near.filter(kept).unwrap_or(at))
}

fn split(text: &str, at: usize) -> (&str, &str) {
    text.split_at_checked(at).unwrap_or((text, ""))
}

/// The last whole place at or before `at`.
fn whole_before(text: &str, at: usize) -> usize {
    let places = (0..=at).rev().filter(|place| text.is_char_boundary(*place));
    let first = text.floor_char_boundary(at);
    places.take(PATIENCE).find(|place| is_whole(text, *place)).unwrap_or(first)
}

/// The first whole place at or after `at`.
fn whole_after(text: &str, at: usize) -> usize {
    let places = (at..=text.len()).filter(|place| text.is_char_boundary(*place));
    let first = text.ceil_char_boundary(at);
    places.take(PATIENCE).find(|place| is_whole(text, *place)).unwrap_or(first)
}

/// Whether a cut here tears nothing apart that shows or reads as one.
fn is_whole(text: &str, at: usize) -> bool {
    let Some((before, after)) = text.split_at_checked(at) else { return false };
    let (Some(last), Some(next)) = (before.chars().next_back(), after.chars().next()) else {
        return true;
    };
    !extends(next) && last != JOINER && !tears_flag(before, next) && !tears_escape(before, after)
}

const JOINER: char = '\u{200d}';

/// Whether the character belongs to the one before it.
fn extends(c: char) -> bool {
    matches!(c,
        '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}'
        | '\u{20d0}'..='\u{20ff}' | '\u{fe00}'..='\u{fe0f}' | '\u{fe20}'..='\u{fe2f}'
        | '\u{1f3fb}'..='\u{1f3ff}' | '\u{e0020}'..='\u{e007f}' | JOINER)
}

/// Flags are pairs of regional letters.
fn tears_flag(before: &str, next: char) -> bool {
    let is_letter = |c: &char| ('\u{1f1e6}'..='\u{1f1ff}').contains(c);
    is_letter(&next) && before.chars().rev().take(PATIENCE).take_while(is_letter).count() % 2 == 1
}

/// Escapes of JSON and of many languages: `\n`, `\u00e9`, and pairs of surrogates.
fn tears_escape(before: &str, after: &str) -> bool {
    let slashes = before.chars().rev().take(PATIENCE).take_while(|c| *c == '\\').count();
    if slashes % 2 == 1 {
        return true;
    }
    let from = before.len().saturating_sub(6);
    let recent = before.get(before.ceil_char_boundary(from)..).unwrap_or_default();
    let Some(digits) = recent.rfind("\\u").and_then(|start| recent.get(start.saturating_add(2)..))
    else {
        return false;
    };
    let is_hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
    is_hex && (digits.len() < 4 || is_surrogate(digits, '8'..='b') && follows(after))
}

fn is_surrogate(digits: &str, second: std::ops::RangeInclusive<char>) -> bool {
    let mut letters = digits.chars().map(|c| c.to_ascii_lowercase());
    letters.next() == Some('d') && letters.next().is_some_and(|c| second.contains(&c))
}

fn follows(after: &str) -> bool {
    after.strip_prefix("\\u").is_some_and(|digits| is_surrogate(digits, 'c'..='f'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cuts(text: &str) -> Vec<usize> {
        (0..=text.len()).filter(|at| text.is_char_boundary(*at) && is_whole(text, *at)).collect()
    }

    #[test]
    fn what_shows_as_one_character_is_cut_only_around_it() {
        for whole in ["e\u{301}", "👨\u{200d}👩", "🇩🇪", "👍🏽", r"\u00e9", r"\ud83d\ude00", r"\n"]
        {
            assert_eq!(cuts(whole), [0, whole.len()], "{whole}");
        }
        assert_eq!(cuts("🇩🇪🇫🇷"), [0, 8, 16]);
    }

    #[test]
    fn a_line_end_that_is_near_is_preferred() {
        assert_eq!(head("aaaaaaa\nbbbb", 10), ("aaaaaaa\n", "bbbb"));
        assert_eq!(head("a\nbbbbbbbbbbbb", 10), ("a\nbbbbbbbb", "bbbb"));
        assert_eq!(tail("aaaa\nbbbbbbb", 9), ("aaaa\n", "bbbbbbb"));
    }

    proptest! {
        #[test]
        fn no_cut_loses_or_adds_anything(text in "\\PC{0,60}", most in 0..80_usize) {
            let (start, rest) = head(&text, most);
            prop_assert_eq!(format!("{start}{rest}"), text.clone());
            prop_assert!(start.len() <= most);
            let (rest, end) = tail(&text, most);
            prop_assert_eq!(format!("{rest}{end}"), text.clone());
            prop_assert!(end.len() <= most);
        }
    }
}

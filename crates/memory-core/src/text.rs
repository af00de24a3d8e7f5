//! Words, stems and a guess at tokens: one tokenizer for scoring, search and tests.

use std::borrow::Cow;

/// Characters per token of ASCII text, as a cautious guess for prose and JSON.
const CHARS_PER_TOKEN: usize = 4;

/// A guess at the tokens of a text: other scripts than ASCII take about one per character.
pub fn tokens(text: &str) -> usize {
    let all = text.chars().count();
    let ascii = text.bytes().filter(u8::is_ascii).count();
    ascii.div_ceil(CHARS_PER_TOKEN).saturating_add(all.saturating_sub(ascii))
}

/// The first bytes of a text, cut between characters.
pub fn head(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}

/// Lower case, one blank between words, nothing at the ends: what "the same" means for a subject, an
/// attribute, a value.
pub fn normal(text: &str) -> String {
    let words = text.split_whitespace().map(str::to_lowercase);
    let joined = words.collect::<Vec<_>>().join(" ");
    joined.trim_matches(|c: char| !c.is_alphanumeric()).to_owned()
}

/// The words of a text in lower case: runs of letters and digits, and each character of a script that
/// has no blanks between words as a pair with the one after it.
pub fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    each_word(text, |word| words.push(word.to_owned()));
    words
}

/// Hands over each word.
pub fn each_word(text: &str, mut word: impl FnMut(&str)) {
    let mut run = String::new();
    let mut before: Option<char> = None;
    for c in text.chars() {
        let is_dense = is_dense(c);
        if !is_dense && c.is_ascii_alphanumeric() {
            run.push(c.to_ascii_lowercase());
        } else if !is_dense && c.is_alphanumeric() {
            run.extend(c.to_lowercase());
        } else if !is_apostrophe(c) && !run.is_empty() {
            word(&run);
            run.clear();
        }
        if is_dense {
            match before {
                Some(first) => word(&String::from_iter([first, c])),
                None => word(c.encode_utf8(&mut [0; 4])),
            }
        }
        before = is_dense.then_some(c);
    }
    if !run.is_empty() {
        word(&run);
    }
}

fn is_apostrophe(c: char) -> bool {
    matches!(c, '\'' | '’')
}

/// Scripts without blanks between words.
fn is_dense(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{2fa1f}')
}

/// The stems of a text's content words, in order; what search and novelty compare.
pub fn terms(text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    each_term(text, |term| terms.push(term.to_owned()));
    terms
}

/// Hands over the stem of each content word.
pub fn each_term(text: &str, mut term: impl FnMut(&str)) {
    each_word(text, |word| {
        if !is_common(word) {
            term(&stem(word));
        }
    });
}

/// A light stemmer: endings of English words that change the form and not the thing.
pub fn stem(word: &str) -> Cow<'_, str> {
    let is_plain = word.len() >= 4 && word.bytes().all(|b| b.is_ascii_lowercase());
    if !is_plain || ["ss", "us", "is"].iter().any(|end| word.ends_with(end)) {
        return Cow::Borrowed(word);
    }
    let without =
        |end: &str, least: usize| word.strip_suffix(end).filter(|rest| rest.len() >= least);
    if let Some(rest) = without("ies", 2) {
        return Cow::Owned(format!("{rest}y"));
    }
    if let Some(rest) = without("ing", 3).or_else(|| without("ed", 3)) {
        return Cow::Borrowed(undoubled(rest));
    }
    if let Some(rest) = without("ly", 4) {
        return Cow::Borrowed(rest);
    }
    let hissing = without("es", 3).filter(|rest| rest.ends_with(['s', 'x', 'z', 'h']));
    let word = hissing.or_else(|| without("s", 3)).unwrap_or(word);
    Cow::Borrowed(word.strip_suffix('e').filter(|rest| rest.len() >= 3).unwrap_or(word))
}

/// `planned` and `plan`, but `called` and `call`.
fn undoubled(rest: &str) -> &str {
    let mut back = rest.bytes().rev();
    let (last, before) = (back.next(), back.next());
    let is_doubled = last == before && !matches!(last, Some(b'l' | b's' | b'z'));
    let shorter = rest.get(..rest.len().saturating_sub(1)).unwrap_or(rest);
    if is_doubled || (last == Some(b'e') && rest.len() > 3) { shorter } else { rest }
}

/// Words that say nothing of what a text is about.
pub fn is_common(word: &str) -> bool {
    COMMON.binary_search(&word).is_ok()
}

/// Sorted, for the search above.
const COMMON: [&str; 128] = [
    "a", "about", "after", "again", "all", "also", "am", "an", "and", "any", "are", "as", "at",
    "be", "been", "before", "being", "but", "by", "can", "could", "d", "das", "de", "der", "did",
    "die", "do", "does", "doing", "don", "dont", "down", "each", "ein", "eine", "el", "en", "et",
    "few", "for", "from", "further", "had", "has", "have", "having", "he", "her", "here", "him",
    "his", "how", "i", "if", "im", "in", "into", "is", "ist", "it", "its", "just", "la", "le",
    "les", "ll", "los", "m", "me", "more", "most", "my", "no", "nor", "not", "now", "of", "off",
    "on", "once", "only", "or", "other", "our", "out", "over", "own", "re", "s", "same", "she",
    "should", "so", "some", "such", "t", "than", "that", "the", "their", "them", "then", "there",
    "these", "they", "this", "those", "to", "too", "un", "und", "up", "ve", "very", "was", "we",
    "were", "what", "when", "where", "which", "while", "who", "will", "with", "would", "you",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_words_are_sorted() {
        assert!(COMMON.is_sorted());
    }
}

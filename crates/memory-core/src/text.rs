//! Words, stems and a guess at tokens: one tokenizer for scoring, search and tests.

/// Characters per token of ASCII text, as a cautious guess for prose and JSON.
const CHARS_PER_TOKEN: usize = 4;

/// A guess at the tokens of a text: other scripts than ASCII take about one per character.
pub fn tokens(text: &str) -> usize {
    let all = text.chars().count();
    let ascii = text.bytes().filter(u8::is_ascii).count();
    ascii.div_ceil(CHARS_PER_TOKEN).saturating_add(all.saturating_sub(ascii))
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
    let mut run = String::new();
    let mut before: Option<char> = None;
    for c in text.chars() {
        let is_dense = is_dense(c);
        if !is_dense && c.is_alphanumeric() {
            run.extend(c.to_lowercase());
        } else if !is_apostrophe(c) {
            flush(&mut run, &mut words);
        }
        match before.filter(|_| is_dense) {
            Some(first) => words.push(String::from_iter([first, c])),
            None if is_dense => words.push(c.to_string()),
            None => {}
        }
        before = is_dense.then_some(c);
    }
    flush(&mut run, &mut words);
    words
}

fn flush(run: &mut String, words: &mut Vec<String>) {
    if !run.is_empty() {
        words.push(std::mem::take(run));
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
    words(text).into_iter().filter(|word| !is_common(word)).map(stem).collect()
}

/// A light stemmer: endings of English words that change the form and not the thing.
pub fn stem(word: String) -> String {
    if !word.is_ascii() || word.len() < 4 || word.bytes().any(|b| b.is_ascii_digit()) {
        return word;
    }
    let ends = |end: &str, least: usize| {
        word.strip_suffix(end).filter(|rest| rest.len() >= least).map(str::to_owned)
    };
    if let Some(rest) = ends("ies", 2) {
        return rest + "y";
    }
    if word.ends_with("ss") || word.ends_with("us") || word.ends_with("is") {
        return word;
    }
    if let Some(rest) = ends("ing", 3).or_else(|| ends("ed", 3)) {
        return undoubled(rest);
    }
    if let Some(rest) = ends("sses", 2) {
        return rest + "ss";
    }
    if let Some(rest) = ends("ly", 4) {
        return rest;
    }
    let plain =
        ends("es", 3).filter(|rest| rest.ends_with(['x', 'z', 'h'])).or_else(|| ends("s", 3));
    let word = plain.unwrap_or(word);
    match word.strip_suffix('e') {
        Some(rest) if rest.len() >= 3 => rest.to_owned(),
        Some(_) | None => word,
    }
}

/// `planned` and `plan`, but `called` and `call`.
fn undoubled(mut rest: String) -> String {
    let mut back = rest.bytes().rev();
    let (last, before) = (back.next(), back.next());
    let is_doubled = last == before && !matches!(last, Some(b'l' | b's' | b'z'));
    if is_doubled || (last == Some(b'e') && rest.len() > 3) {
        rest.pop();
    }
    rest
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

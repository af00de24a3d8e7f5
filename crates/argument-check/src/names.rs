//! Did you mean: the known word that is closest to a wrong one.

/// The known word nearest to `word`, if one is near enough to be what was meant.
///
/// Case, `-` and `_` do not count. At most a third of the letters may differ.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = plain(word);
    let allowed = (wanted.len() / 3).max(1);
    let distances = known.into_iter().map(|name| (distance(&wanted, &plain(name)), name));
    let best = distances.min_by_key(|(distance, _)| *distance)?;
    (best.0 <= allowed && best.0 < wanted.len()).then_some(best.1)
}

/// Long words are cut: nobody means a known word by two hundred letters.
fn plain(word: &str) -> Vec<char> {
    let letters = word.chars().filter(|c| !matches!(c, '-' | '_' | ' '));
    letters.flat_map(char::to_lowercase).take(64).collect()
}

/// Insertions, deletions and replacements between two words.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.iter().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, to) in row.iter_mut().skip(1).zip(b) {
            let replaced = diagonal + usize::from(from != to);
            diagonal = *cell;
            *cell = replaced.min(diagonal + 1).min(left + 1);
            left = *cell;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_pen_is_recognised_and_a_different_word_is_not() {
        let known = ["timeout_ms", "effect", "description", "run"];
        for (word, meant) in [
            ("timeout", Some("timeout_ms")),
            ("timeoutMs", Some("timeout_ms")),
            ("efect", Some("effect")),
            ("discription", Some("description")),
            ("runs", Some("run")),
            ("colour", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known), meant, "{word}");
        }
    }

    #[test]
    fn distances_are_those_of_the_textbook() {
        let letters = |word: &str| word.chars().collect::<Vec<_>>();
        for (a, b, expected) in
            [("kitten", "sitting", 3), ("", "abc", 3), ("abc", "", 3), ("same", "same", 0)]
        {
            assert_eq!(distance(&letters(a), &letters(b)), expected, "{a} {b}");
        }
    }
}

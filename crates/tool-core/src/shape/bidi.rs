//! Writing directions: what a piece of text opens it also closes, so that a cut text never turns
//! what follows it around.

const CLOSE_EMBEDDING: char = '\u{202c}';
const CLOSE_ISOLATE: char = '\u{2069}';

/// The text with every direction closed that it opens.
pub(super) fn closed(text: &str) -> String {
    let mut open = Vec::new();
    text.chars().for_each(|c| step(&mut open, c));
    let mut closed = text.to_owned();
    closed.extend(open.into_iter().rev());
    closed
}

/// `open` holds the characters that would close what is open.
fn step(open: &mut Vec<char>, c: char) {
    match c {
        '\u{202a}' | '\u{202b}' | '\u{202d}' | '\u{202e}' => open.push(CLOSE_EMBEDDING),
        '\u{2066}' | '\u{2067}' | '\u{2068}' => open.push(CLOSE_ISOLATE),
        CLOSE_EMBEDDING if open.last() == Some(&CLOSE_EMBEDDING) => {
            open.pop();
        }
        // The end of an isolate ends the embeddings within it.
        CLOSE_ISOLATE => {
            if let Some(at) = open.iter().rposition(|close| *close == CLOSE_ISOLATE) {
                open.truncate(at);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_open_is_closed_in_reverse_order() {
        assert_eq!(closed("a\u{202e}b\u{2067}c"), "a\u{202e}b\u{2067}c\u{2069}\u{202c}");
    }

    #[test]
    fn what_is_closed_stays_as_it_is() {
        let text = "a\u{2067}b\u{202e}c\u{2069}d\u{202c}";
        assert_eq!(closed(text), text);
    }
}

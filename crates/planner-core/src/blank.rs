//! Text in which nobody can see anything.

/// Whether a text has nothing but blanks, marks that direct or join what is not there, and controls.
pub fn is_blank(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || c.is_control() || is_unseen(c))
}

/// Characters without a picture of their own.
fn is_unseen(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'
            | '\u{1160}'
            | '\u{17b4}'
            | '\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{e0000}'..='\u{e007f}'
            | '\u{e0100}'..='\u{e01ef}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_sees_is_blank() {
        for text in ["", " \n\t", "\u{200b}", "\u{feff}\u{2060} \u{a0}", "\u{3164}", "\u{0}"] {
            assert!(is_blank(text), "{text:?}");
        }
        for text in ["a", "\u{200b}.", "日", "👍\u{fe0f}", "—"] {
            assert!(!is_blank(text), "{text:?}");
        }
    }
}

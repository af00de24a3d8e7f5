//! How many tokens a text takes. Pure: the same text has the same number, always and everywhere.
//!
//! - [`by_characters`]: a guess from the number of characters; takes no memory and no time
//! - [`by_encoding`]: the text in the tokens of the `o200k_base` encoding, by `tiktoken-rs`
//! - [`at_most`]: what no encoding exceeds
//!
//! The encoding's tables are part of the program and are unpacked when the first text is encoded,
//! which takes time and memory that stays (`docs/bench.md` has the numbers). So whoever asks should
//! first see whether the answer matters: where [`at_most`] is below a limit, no count is needed.

mod cache; // texts that were encoded lately
mod encoding; // the encoding itself

pub use encoding::{by_encoding, is_loaded};

/// Characters per token of ASCII text, as a cautious guess for prose and JSON.
pub const CHARACTERS: usize = 4;

/// A guess: other scripts than ASCII take about one token per character.
pub fn by_characters(text: &str) -> usize {
    let all = text.chars().count();
    let ascii = text.chars().filter(char::is_ascii).count();
    ascii.div_ceil(CHARACTERS).saturating_add(all.saturating_sub(ascii))
}

/// What no encoding exceeds: a token stands for a byte at least.
pub fn at_most(text: &str) -> usize {
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guess_takes_four_ascii_characters_for_a_token_and_one_of_other_scripts() {
        assert_eq!(by_characters(""), 0);
        assert_eq!(by_characters("plain"), 2);
        assert_eq!(by_characters("你好"), 2);
    }
}

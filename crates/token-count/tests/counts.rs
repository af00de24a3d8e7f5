//! What is counted is what the encoding says, and nothing that is said can stop it.

#![cfg(test)]

use proptest::prelude::*;
use token_count::{at_most, by_characters, by_encoding};

#[test]
fn known_texts_have_their_known_numbers_without_any_network() {
    for (text, tokens) in [
        ("", 0),
        ("hello world", 2),
        ("tiktoken is great!", 6),
        ("antidisestablishmentarianism", 6),
        ("お誕生日おめでとう", 8),
        ("2 + 2 = 4", 7),
        ("<|endoftext|>", 7),
    ] {
        assert_eq!(by_encoding(text), tokens, "{text}");
    }
}

/// As fast as text of any shape comes, and never more than its bytes.
#[test]
fn text_of_any_shape_and_length_is_counted_in_little_time() {
    let shapes: [(&str, usize); 7] = [
        ("a", 10_000_000),
        (" ", 10_000_000),
        ("\n", 1_000_000),
        ("\u{a0}", 1_000_000),
        ("9f", 5_000_000),
        ("words and \"json\": {1,2}, ", 400_000),
        ("汉字", 1_000_000),
    ];
    for (piece, times) in shapes {
        let text = piece.repeat(times);
        let tokens = by_encoding(&text);
        assert!(tokens > 0 && tokens <= at_most(&text), "{piece:?}: {tokens}");
        assert_eq!(by_encoding(&text), tokens, "{piece:?}");
    }
}

#[test]
fn a_long_text_counts_about_as_much_as_its_parts() {
    let part = "The service answered 503 at 12:04:33 because {\"pool\": \"exhausted\"}.\n";
    let one = by_encoding(part);
    for times in [100, 10_000, 100_000] {
        let (all, parts) = (by_encoding(&part.repeat(times)), one * times);
        assert!(all > parts * 97 / 100 && all < parts * 103 / 100, "{times}: {all} {parts}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn no_text_takes_more_tokens_than_bytes(text in "\\PC{0,200}|[ -~]{0,400}") {
        prop_assert!(by_encoding(&text) <= at_most(&text));
        prop_assert!(by_characters(&text) <= at_most(&text));
    }
}

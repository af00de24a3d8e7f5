//! The encoding. Nothing that is encoded can make it panic or take long: a text is cut into pieces,
//! and of a very long one only some are counted.

use std::collections::HashSet;
use std::sync::OnceLock;

use tiktoken_rs::CoreBPE;

use crate::cache;

/// Bytes of a piece: a run of letters as long as this takes little time, whatever it is.
const PIECE: usize = 8 * 1024;
/// Pieces of a text that are counted; of a longer one the rest is taken to be like them.
const COUNTED: usize = 32;
/// A shorter text is encoded sooner than it is looked up.
const SHORT: usize = 32;

static TABLES: OnceLock<Option<CoreBPE>> = OnceLock::new();

/// Whether the tables are in memory.
pub fn is_loaded() -> bool {
    TABLES.get().is_some()
}

/// The tables; absent only if those in the program cannot be read, which a test rules out.
fn tables() -> Option<&'static CoreBPE> {
    TABLES.get_or_init(|| tiktoken_rs::o200k_base().ok()).as_ref()
}

/// The tokens of a text. Texts of the last requests are remembered, because a conversation is sent
/// again with each turn.
pub fn by_encoding(text: &str) -> usize {
    if text.len() < SHORT {
        return encoded(text);
    }
    let key = cache::key(text);
    cache::known(key).unwrap_or_else(|| {
        let tokens = encoded(text);
        cache::keep(key, tokens);
        tokens
    })
}

fn encoded(text: &str) -> usize {
    let pieces = pieces(text);
    let Some(step) = pieces.len().checked_div(COUNTED).filter(|step| *step > 0) else {
        return pieces.into_iter().map(piece_tokens).sum();
    };
    let (mut bytes, mut tokens) = (0_usize, 0_usize);
    for piece in pieces.into_iter().step_by(step).take(COUNTED) {
        bytes = bytes.saturating_add(piece.len());
        tokens = tokens.saturating_add(piece_tokens(piece));
    }
    // Rounded up, and wide enough for every length.
    let all = u128::try_from(tokens).unwrap_or(u128::MAX).saturating_mul(wide(text.len()));
    usize::try_from(all.div_ceil(wide(bytes).max(1))).unwrap_or(usize::MAX)
}

fn wide(number: usize) -> u128 {
    u128::try_from(number).unwrap_or(u128::MAX)
}

/// A piece that the encoding gives up on counts as much as it may at most.
fn piece_tokens(piece: &str) -> usize {
    let encoded = tables().and_then(|tables| tables.encode(piece, &HashSet::new()).ok());
    encoded.map_or_else(|| crate::at_most(piece), |(tokens, _)| tokens.len())
}

/// Cut at blanks where there are some, else between characters.
fn pieces(text: &str) -> Vec<&str> {
    let (mut rest, mut pieces) = (text, Vec::new());
    while rest.len() > PIECE {
        let end = rest.floor_char_boundary(PIECE);
        let (head, _) = rest.split_at(end);
        let at = head.rfind(' ').filter(|at| *at > 0).unwrap_or(end);
        let (head, tail) = rest.split_at(at);
        pieces.push(head);
        rest = tail;
    }
    pieces.push(rest);
    pieces
}

//! Texts that were encoded lately, by a hash of them. Two generations: when the younger one is full it
//! becomes the older one, and what nobody asked for since is forgotten.

#![expect(
    clippy::disallowed_types,
    reason = "what is remembered of a pure function; never held long"
)]

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher as _};
use std::sync::{LazyLock, Mutex};

/// Texts of a generation; some 100 KB.
const MOST: usize = 2048;

/// Length and hash of a text.
pub(crate) type Key = (usize, u64);

#[derive(Default)]
struct Generations {
    young: HashMap<Key, usize>,
    old: HashMap<Key, usize>,
}

static KEPT: LazyLock<Mutex<Generations>> = LazyLock::new(Mutex::default);

/// Stands for a text. The hash has no secret, so that it is the same in every process.
pub(crate) fn key(text: &str) -> Key {
    let mut hasher = DefaultHasher::new();
    hasher.write(text.as_bytes());
    (text.len(), hasher.finish())
}

pub(crate) fn known(key: Key) -> Option<usize> {
    let mut kept = KEPT.lock().ok()?;
    if let Some(tokens) = kept.young.get(&key) {
        return Some(*tokens);
    }
    let tokens = kept.old.remove(&key)?;
    kept.insert(key, tokens);
    Some(tokens)
}

pub(crate) fn keep(key: Key, tokens: usize) {
    if let Ok(mut kept) = KEPT.lock() {
        kept.insert(key, tokens);
    }
}

impl Generations {
    fn insert(&mut self, key: Key, tokens: usize) {
        if self.young.len() >= MOST {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, tokens);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_stays_and_the_rest_is_forgotten() {
        let mut kept = Generations::default();
        for number in 0..MOST {
            kept.insert((number, 0), number);
        }
        kept.insert((MOST, 0), MOST);
        assert_eq!((kept.young.len(), kept.old.len()), (1, MOST));
        for number in 0..MOST {
            kept.insert((number, 1), number);
        }
        assert!(kept.young.len() <= MOST && kept.old.len() <= MOST);
        assert!(!kept.old.contains_key(&(0, 0)) && !kept.young.contains_key(&(0, 0)));
    }

    #[test]
    fn texts_of_one_length_differ() {
        assert_ne!(key("abc"), key("abd"));
        assert_eq!(key("abc"), key("abc"));
    }
}

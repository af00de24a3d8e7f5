//! Names a record for readers: its sequence, and the beginning of its nonce.

use std::fmt;
use std::str::FromStr;

use proto::ids::{Nonce, Sequence};
use serde::{Serialize, Serializer};

/// Digits of the nonce.
const DIGITS: usize = 8;

/// `sequence-nonce`, for example `17-0a1b2c3d`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventId {
    pub(crate) sequence: Sequence,
    nonce: String,
}

impl EventId {
    pub(crate) fn new(sequence: Sequence, nonce: &Nonce) -> Self {
        Self { sequence, nonce: nonce.as_str().chars().take(DIGITS).collect() }
    }

    /// Whether it names this record.
    pub(crate) fn names(&self, sequence: Sequence, nonce: Option<&Nonce>) -> bool {
        let same = |nonce: &Nonce| nonce.as_str().starts_with(&self.nonce);
        self.sequence == sequence && nonce.is_some_and(same)
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.sequence, self.nonce)
    }
}

impl Serialize for EventId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Text that names no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadId;

impl FromStr for EventId {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, BadId> {
        let (sequence, nonce) = text.split_once('-').ok_or(BadId)?;
        let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        if nonce.len() != DIGITS || !nonce.bytes().all(hex) {
            return Err(BadId);
        }
        let sequence = Sequence(sequence.parse().map_err(|_refused| BadId)?);
        Ok(Self { sequence, nonce: nonce.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_names_one_record() {
        let nonce = Nonce::new("0a1b2c3d4e5f6071").unwrap();
        let id = EventId::new(Sequence(17), &nonce);
        assert_eq!(id.to_string(), "17-0a1b2c3d");
        assert_eq!("17-0a1b2c3d".parse(), Ok(id.clone()));
        assert!(id.names(Sequence(17), Some(&nonce)));
        assert!(!id.names(Sequence(18), Some(&nonce)));
        assert!(!id.names(Sequence(17), Some(&Nonce::new("1a1b2c3d4e5f6071").unwrap())));
        assert!(!id.names(Sequence(17), None));
    }

    #[test]
    fn other_text_names_none() {
        for text in ["", "17", "17-", "17-0a1b2c3", "x-0a1b2c3d", "17-0A1B2C3D", "17-0a1b2c3d-"] {
            assert_eq!(text.parse::<EventId>(), Err(BadId), "{text}");
        }
    }
}

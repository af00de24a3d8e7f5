//! How a record is written and read back.
//!
//! A reader passes over fields that it does not know. A change that an older reader must not pass
//! over raises `min_reader`: such a reader hands the delivery back and decides nothing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::Nonce;
use crate::record::Record;

/// The newest version that this build reads and writes.
pub const VERSION: u16 = 3;
/// The oldest reader that may act on what this build writes, unless the record says more.
pub const MIN_READER: u16 = 1;

/// A record as bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Envelope {
    /// The version of the form that it is written in.
    pub v: u16,
    /// The oldest version that may act on it.
    pub min_reader: u16,
    /// Marks this append for ever.
    pub nonce: Nonce,
    /// W3C trace context of the writer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// What it says.
    pub body: Record,
}

/// Why bytes are not a record for this process.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// A newer process wrote it; hand the delivery back.
    #[error("the record needs reader version {min_reader}, this process is {VERSION}: upgrade it")]
    TooNew {
        /// What it needs.
        min_reader: u16,
    },
    /// No version can read it; it has to be parked.
    #[error("the record cannot be decoded: {0}")]
    Malformed(String),
}

/// Read before all else, so that a newer body is never half understood.
#[derive(Deserialize)]
struct Head {
    min_reader: u16,
}

impl Envelope {
    /// Wraps a record that this build writes.
    pub fn new(nonce: Nonce, traceparent: Option<String>, body: Record) -> Self {
        let needed = body.min_reader();
        Self { v: needed, min_reader: needed, nonce, traceparent, body }
    }

    /// The bytes.
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_else(|_| unreachable!("records have string keys only"))
    }

    /// Reads bytes back.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let malformed = |error: serde_json::Error| DecodeError::Malformed(error.to_string());
        let head: Head = serde_json::from_slice(bytes).map_err(malformed)?;
        if head.min_reader > VERSION {
            return Err(DecodeError::TooNew { min_reader: head.min_reader });
        }
        serde_json::from_slice(bytes).map_err(malformed)
    }

    /// The nonce alone, when the rest cannot be read.
    pub fn nonce_of(bytes: &[u8]) -> Option<Nonce> {
        #[derive(Deserialize)]
        struct OnlyNonce {
            nonce: Nonce,
        }
        serde_json::from_slice::<OnlyNonce>(bytes).ok().map(|head| head.nonce)
    }
}

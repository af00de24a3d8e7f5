//! The contract of the wire: what is written, what may be read, what is refused.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod fixtures;
mod hashes;
mod names;
mod reading;
mod samples;
mod saved;
mod schemas;
mod transcripts;

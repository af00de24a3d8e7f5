//! What a rehearsal replies, in both protocols and over HTTP.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests"
)]

mod code;
mod files;
mod http;
mod ops;
mod play;
mod rules;

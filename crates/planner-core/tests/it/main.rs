//! Stories and properties of what a thread does next.
#![cfg(test)]
#![expect(clippy::unwrap_in_result, reason = "a test may stop anywhere")]
#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them")]

mod approvals;
mod calls;
mod cancels;
mod ends;
mod inputs;
mod limits;
mod memory;
mod ownership;
mod prompts;
mod properties;
mod repeats;
mod replies;
mod restore;
mod small_world;
mod story;
mod strangers;
mod verifies;
mod world;

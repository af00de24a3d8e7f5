//! Fakes and conformance suites for the ports.
//!
//! - [`conformance`]: one suite per port, which every adapter has to pass
//! - [`memory`]: a bus and a working memory in memory, with virtual time and faults to order
//! - [`recall`]: a long-term memory in memory
//! - [`model`]: a model that replies by a script
//! - [`qdrant`]: a Qdrant for tests
//! - [`servers`]: what tests do when a server is missing
#![expect(clippy::expect_used, reason = "this crate is test code as a whole")]

pub mod conformance;
mod lock;
pub mod memory;
pub mod model;
pub mod qdrant;
pub mod recall;
pub mod servers;

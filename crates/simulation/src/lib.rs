//! Seeded worlds: real planners and workers over a simulated bus, in virtual time.
//!
//! One seed is one world: what people send, what breaks and when, what the model says. Planners and
//! workers are the service libraries themselves; bus, model and tools are fakes that do as the seed
//! says. A world ends when everything is quiet, or with the first broken rule.
//!
//! Reading order:
//!
//! - [`plan`]: what happens from outside; [`script`], [`model`]: what the model does about it
//! - [`world`]: one world; [`processes`]: its planners and workers; [`tools`], [`executor`]: its
//!   tools and the ledger of their effects
//! - [`chaos`], [`fault_kind`]: what goes wrong; [`judge`], [`resume`]: what must hold all the same
//! - [`campaign`]: many worlds; [`totals`], [`branches`]: what they report; [`story`]: records as lines
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::wildcard_enum_match_arm,
    reason = "this crate is test code as a whole"
)]

pub mod branches;
pub mod campaign;
pub mod chaos;
pub mod executor;
pub mod fault_kind;
pub mod judge;
mod lock;
pub mod model;
pub mod plan;
pub mod processes;
pub mod resume;
pub mod script;
pub mod shared;
pub mod story;
pub mod tools;
pub mod totals;
pub mod world;

/// Prints a line.
pub fn say(line: &str) {
    println!("{line}");
}

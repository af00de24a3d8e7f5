//! The bus over real files: contracts, crashes, damage, and a file that is full.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod awaited;
mod conformance;
mod durability;
mod forgetting;
mod full;
mod model;
mod opening;
mod reading;
mod starts;
mod world;
mod writing;

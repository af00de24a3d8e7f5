//! `systole bench`: what this machine reaches, each part in a process of its own, beside what the same
//! machine syncs and what a bare program with the same work reaches.
//!
//! - [`command`]: all parts, one after another · [`report`], [`table`], [`statistics`]: what is said
//! - [`processes`]: starting, weighing and ending them · [`part`]: one measurement inside its process
//! - [`world`], [`counted`], [`files`]: the product as it always runs, with an ear on its journal
//! - [`throughput`], [`overhead`], [`cold`], [`memory`], [`early`]: what is measured of it
//! - [`distributed`]: the same as processes over servers
//! - [`floor`], [`log`], [`disk`]: what it is compared with · [`model`], [`script`]: the model

pub(crate) mod command;
pub(crate) mod distributed;
pub(crate) mod model;
pub(crate) mod part;

mod cold;
mod counted;
mod disk;
mod early;
mod files;
mod floor;
mod log;
mod memory;
mod overhead;
mod processes;
mod report;
mod script;
mod statistics;
mod table;
mod throughput;
mod world;

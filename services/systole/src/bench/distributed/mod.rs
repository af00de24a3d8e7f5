//! `systole bench --distributed`: the product as processes over servers of its own, beside a bare
//! program that moves the same messages through the same servers.
//!
//! - [`command`]: one measurement after another · [`report`], [`table`]: what is said
//! - [`deployment`]: servers, planners and workers · [`connection`]: a client's way to them
//! - [`talking`]: replies that stream
//! - [`fleet`]: many runs, as a client sees them · [`bare`]: the floor · [`waiting`]: runs that wait

pub(crate) mod bare;
pub(crate) mod command;
pub(crate) mod fleet;
pub(crate) mod talking;
pub(crate) mod waiting;
pub(crate) mod worker;

mod connection;
mod deployment;
pub(crate) mod report;
pub(crate) mod table;

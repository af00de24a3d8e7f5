//! Drives `tool-core`: takes deliveries of tool calls, finds out what has to be known of each, claims
//! it, runs it, reports its one observation and acknowledges.
//!
//! Acks come last. Whatever the worker does before one may happen again on another worker: looks
//! and observations are harmless to repeat, and effects are guarded by leases and start records.
//!
//! Reading order:
//!
//! - [`config`], [`tools`]: what a worker is given
//! - [`worker`]: its tasks; `intake` pulls, `keeper` keeps deliveries and leases alive, `hints`
//!   listens for cancels, `offer` tells planners which tools there are
//! - `handling`: one delivery; `case`: one call, step by step, with `looks`, `attempt`, `starting`
//!   and `report`
//! - [`executor`]: how one attempt is carried out; [`metrics`]: what is counted
//! - `sharing`, `resource`, `room`: what calls share with others; `breaker`, `running`, `shared`

pub mod config;
pub mod executor;
pub mod metrics;
pub mod tools;
pub mod worker;

mod attempt;
mod breaker;
mod case;
mod handling;
mod hints;
mod intake;
mod keeper;
mod looks;
mod offer;
mod report;
mod resource;
pub mod room;
mod running;
mod shared;
mod sharing;
mod starting;

pub use config::{WorkerConfig, WorkerPorts};
pub use metrics::Metrics;
pub use tools::{Tool, Tools};
pub use worker::Worker;

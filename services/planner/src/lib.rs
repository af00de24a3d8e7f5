//! Drives `planner-core`: takes deliveries, loads and folds threads, carries out one decision after
//! another, and asks the model.
//!
//! Acks come last: a crash between an append and the ack repeats the look, never the effect.
//!
//! Reading order:
//!
//! - [`config`], [`book`]: what a planner is given
//! - [`planner`]: its tasks; `intake` pulls, `keeper` keeps deliveries alive, `sweep` finds
//!   threads that nothing wakes
//! - `handling`: one delivery from load to ack, with `load`, `snapshots`, `carry`, `states` and `chain`
//! - `reasoning`: one model request, with `ear` for what delays it and `speech` for its live text
//! - [`memory`]: what a run begins with, and what is kept of it
//! - [`metrics`]: what is counted; `audit`: journals held against the invariants
//! - `running`, `held`, `tools`, `evaluation`, `server_clock`

pub mod book;
pub mod config;
pub mod metrics;
pub mod planner;

mod audit;
mod carry;
mod chain;
mod ear;
mod evaluation;
mod handling;
mod intake;
mod load;
pub mod memory;
mod reasoning;
mod running;
mod snapshots;
mod speech;
mod states;
mod sweep;
mod tools;

pub use book::AgentBook;
pub use config::{Config, PlannerPorts, SnapshotRule};
pub use memory::Memory;
pub use metrics::Metrics;
pub use planner::Planner;

//! What every service stands on: tasks that are named and waited for, shutdown in two steps, the
//! system's clock and names, and what operators ask a process.
//!
//! Reading order: [`tasks`] · [`shutdown`] · [`system`] · [`health`], [`metrics`], [`probes`]: what
//! operators ask

pub mod health;
pub mod metrics;
pub mod probes;
pub mod shutdown;
pub mod system;
pub mod tasks;

//! What every service stands on: tasks that are named and waited for, shutdown in two steps, held
//! deliveries, server time, the system's clock and names, and what operators ask a process.
//!
//! Reading order: [`tasks`] · [`shutdown`] · [`held`] · [`server_time`] · [`bounded`] · [`system`]
//! · [`health`], [`metrics`], [`probes`]: what operators ask

pub mod bounded;
pub mod health;
pub mod held;
pub mod metrics;
pub mod probes;
pub mod server_time;
pub mod shutdown;
pub mod system;
pub mod tasks;

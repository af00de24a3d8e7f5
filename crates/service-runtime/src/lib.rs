//! What every service stands on: tasks that are named and waited for, shutdown in two steps, held
//! deliveries, server time, the system's clock and names.
//!
//! Reading order: [`tasks`] · [`shutdown`] · [`held`] · [`server_time`] · [`bounded`] · [`system`]

pub mod bounded;
pub mod held;
pub mod server_time;
pub mod shutdown;
pub mod system;
pub mod tasks;

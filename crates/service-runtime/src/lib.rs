//! What every service stands on: tasks that are named and waited for, shutdown in two steps, the
//! system's clock and names.
//!
//! Reading order: [`tasks`] · [`shutdown`] · [`system`]

pub mod shutdown;
pub mod system;
pub mod tasks;

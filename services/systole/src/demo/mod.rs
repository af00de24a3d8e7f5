//! The ops demo's world: a real service in a process of its own, and the tools that look at it and
//! restart it. Only the model's words may be rehearsed; every effect is real.
//!
//! - [`folder`]: what lies on disk · [`service`]: the service · [`control`]: starting and stopping it
//! - [`tool`]: the commands behind the agent's tools · [`files`]: the agent, built in

mod bookings;
pub(crate) mod control;
pub(crate) mod files;
pub(crate) mod folder;
pub(crate) mod service;
pub(crate) mod tool;

/// The variable that names the demo's folder to its tools.
pub(crate) const DIR: &str = "SYSTOLE_DEMO_DIR";

//! HTTP and server-sent events in, records out. The gateway appends inputs and reads journals; it
//! decides nothing about an agent, and a client that goes away changes nothing: what was accepted
//! is a record.
//!
//! Reading order:
//!
//! - [`settings`]: where it listens, who may come, how much at once
//! - [`gateway`]: the routes, and serving them until the end
//! - `caller`, `body`, `problem`: what every request passes, and how it is refused
//! - `reading`: a thread as its journal has it
//! - `threads`, `inputs`, `cancel`, `approvals`: what clients ask
//! - `memory`: what is remembered
//! - `events`: a thread as it happens
//! - [`openapi`]: all of it for programs that make clients
//! - [`metrics`]: what operators see

mod approvals;
mod body;
mod caller;
mod cancel;
mod events;
pub mod gateway;
mod inputs;
mod memory;
pub mod metrics;
pub mod openapi;
mod problem;
mod reading;
pub mod settings;
mod threads;

pub use gateway::{Gateway, GatewayPorts};
pub use metrics::Metrics;
pub use settings::{ApiKey, Settings};

//! Who may ask a model now: limits of requests, tokens and open requests for each model at each
//! endpoint, shared by all planners and fair between tenants.
//!
//! - [`pool`]: the algorithm; pure
//! - [`client`]: asks for places on behalf of one process; several agree by [`ports::admission::SharedCells`]
//! - [`local`]: cells of one process, for the embedded mode and while the shared ones do not answer

pub mod client;
pub mod local;
pub mod pool;

pub use client::{Admissions, Settings};
pub use local::LocalCells;
pub use pool::Limits;

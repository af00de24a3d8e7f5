//! The wire of Systole: the words that processes, stores and clients exchange.
//!
//! Nothing here decides; every crate may depend on this one and it depends on none of them.
//! Reading order:
//!
//! - [`ids`]: names of things, each a type of its own
//! - [`time`]: instants and spans as they travel
//! - [`subject`]: where a record lies in the journal
//! - [`record`]: what a record says, with [`input`], [`fact`], [`call`] and [`observation`]
//! - [`envelope`]: how a record is written, versioned and read back
//! - [`saved`]: a folded thread as it is kept outside the journal
//! - [`error_code`]: every stable code that a message, an observation or a page may carry
//! - [`agent`], [`tool`]: what an agent and a tool promise
//! - [`freeze`]: what operators hold back
//! - [`transcript`], [`model`]: what a model is sent and what it sends back
//! - [`live`], [`notice`], [`event`], [`phase`]: what readers see
//! - [`schema`]: JSON Schemas of all of the above

pub mod agent;
pub mod call;
pub mod envelope;
pub mod error_code;
pub mod event;
pub mod fact;
pub mod freeze;
pub mod grounds;
pub mod hash;
pub mod ids;
pub mod input;
pub mod live;
pub mod model;
pub mod notice;
pub mod observation;
pub mod phase;
pub mod record;
pub mod saved;
pub mod schema;
pub mod subject;
pub mod time;
pub mod tool;
pub mod transcript;

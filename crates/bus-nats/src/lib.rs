//! The ports of the bus over NATS JetStream (server 2.12 or newer).
//!
//! A thread's records lie on one stream per partition, which is journal and queue at once. Requests
//! to the server's API are written out here, because their answers carry what the client library
//! does not pass on: the sequence in a refusal, the number of records that are left.
//!
//! Reading order:
//!
//! - [`settings`], `connect`, [`refusal`]: how to get there, and why one does not
//! - `layout`: streams, consumers and buckets, created and migrated idempotently
//! - `api`, `replies`: requests and answers of the server
//! - `journal`, `reads`, `recent`, `schedules`: records
//! - `queues`: deliveries
//! - `live`, `artifacts`, `registry`, `freezes`
//! - [`watch`], [`bare`]: for measuring from outside
//! - [`inspect`]: what servers say of themselves

mod api;
mod artifacts;
pub mod bare;
mod connect;
mod freezes;
pub mod inspect;
mod journal;
mod layout;
mod live;
mod queues;
mod reads;
mod recent;
pub mod refusal;
mod registry;
mod replies;
mod schedules;
pub mod settings;
mod task;
pub mod watch;

pub use connect::NatsBus;
pub use refusal::ConnectError;
pub use settings::{Login, Settings};

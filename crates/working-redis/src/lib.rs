//! Working memory over Redis 6.2 or newer, or Valkey.
//!
//! What is here saves work and protects nothing: the whole of it may be lost at any moment. Each
//! request has a deadline. While the server is away requests fail at once, between attempts to
//! reach it that lie further and further apart, up to a bound. Every value has a bound and fades.
//!
//! All keys of a thread, and all keys of a tool, share a hash tag and with it a cluster slot, and
//! no request touches two of them.
//!
//! ```no_run
//! # async fn wire() -> Result<(), ports::BusError> {
//! use working_redis::{RedisMemory, Settings};
//!
//! let settings = Settings {
//!     user: Some("systole".to_owned()),
//!     password: Some("secret".to_owned()),
//!     ..Settings::new("rediss://redis.internal:6380/0")
//! };
//! let memory = RedisMemory::connect(settings).await?;
//! let working: std::sync::Arc<dyn ports::working_memory::WorkingMemory> =
//!     std::sync::Arc::new(memory.clone());
//! # drop(working);
//! # memory.ping().await
//! # }
//! ```
//!
//! Reading order:
//!
//! - [`settings`], `link`: how to get there, and back after a loss
//! - [`facts`]: what the server says of itself
//! - `keys`, `scripts`: what lies where, and how it changes in one step
//! - `memory`, `cells`: the ports
//! - `failures`: what a failure means to the caller

mod cells;
pub mod facts;
mod failures;
mod keys;
mod link;
mod memory;
mod scripts;
pub mod settings;

pub use facts::Facts;
pub use memory::{RedisMemory, VALUE_LIMIT};
pub use settings::Settings;

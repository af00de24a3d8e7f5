//! Journal, queues, live text, artifacts, registry and working memory in one SQLite file, owned by
//! one process.
//!
//! One thread writes. It takes what is queued, executes it in one transaction, commits once and
//! answers everybody, so many callers share one fsync and nobody waits for company. A few threads
//! read; a read that begins after an answered write sees it. Deliveries, leases and live topics
//! live in memory: the file lock proves that an earlier process is dead, so after a restart every
//! lease is void and every record without an ack is delivered at once.
//!
//! Reading order:
//!
//! - [`options`], [`open`], `lock`, `schema`: how a file becomes a bus
//! - `writer`, `writer_loop`, `commit`: the one writer and its group commits; `readers`: the others
//! - `rows`, `appends`, `journal`, `purge`, `schedules`, `starts`: the journal
//! - `book`, `queues`: deliveries
//! - `live`, `artifacts`, `registry`, [`freezes`]: the smaller ports
//! - `working_memory`, `leases`, `behind`: working memory
//! - `forget`: all of a thread, removed for good
//! - `awaited`: notes of the program that owns the file
//! - [`read_only`]: looking at a file that another process owns

mod appends;
mod artifacts;
mod awaited;
mod behind;
mod book;
mod bus;
mod commit;
mod fault;
mod forget;
pub mod freezes;
mod guarded;
mod journal;
mod leases;
mod live;
mod lock;
pub mod open;
pub mod options;
mod purge;
mod queues;
pub mod read_only;
mod readers;
mod recent;
mod registry;
mod rows;
mod schedules;
mod schema;
mod starts;
mod working_memory;
mod writer;
mod writer_loop;

pub use bus::SqliteBus;
pub use freezes::FreezeFolder;
pub use lock::is_owned;
pub use options::{Durability, Options};
pub use read_only::SqliteReader;

/// The largest payload of one record.
pub const RECORD_LIMIT: usize = 1024 * 1024;
/// The largest artifact, snapshot or kept observation.
pub const ARTIFACT_LIMIT: usize = 64 * 1024 * 1024;

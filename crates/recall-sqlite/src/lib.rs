//! Long-term memory in one SQLite file beside the store.
//!
//! The file keeps fragments; searching is done in memory. Of each tenant that asks, words and vectors
//! are loaded once into one bounded block: BM25 over that tenant's words alone, and exact cosine over
//! bytes. SQLite's own full-text index is not used: its statistics are those of a whole table, so one
//! tenant's words would shift another's ranks, and it looks up a length for each match, which took
//! 60 ms over 100,000 fragments.
//!
//! The file can be deleted: the indexer fills it again from the journal. Other processes may look at
//! it, and forget in it, while one writes.
//!
//! Reading order:
//!
//! - [`store`]: the port; [`options`]
//! - `schema`, `rows`: how fragments lie in the file; `erase`: how they leave it for good
//! - `block`: what is in memory of a tenant; `words` and `vectors`, its two lists; `search`

mod block;
mod erase;
pub mod options;
mod rows;
mod schema;
mod search;
pub mod store;
mod vectors;
mod words;

pub use options::Options;
pub use store::SqliteRecall;

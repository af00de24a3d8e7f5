//! Long-term memory over Qdrant: one collection for all tenants, with an index that keeps each
//! tenant's points together.
//!
//! A fragment is a point whose id is made of its own id, so that writing again changes nothing. Words
//! are a sparse vector that Qdrant weighs by how rare they are among the tenant's own points; meaning
//! is a dense one. Both lists are fused and weighed by the server, in one request; what turns give to
//! the turns beside them is added here, by the formula that every store shares.
//!
//! Tombstones, cursors and the space of the vectors are points too. A writer that puts what is being
//! forgotten at the same time looks for tombstones again after it has written: either it sees the
//! tombstone, or whoever forgets sees its points.
//!
//! Reading order:
//!
//! - [`settings`]; [`store`]: the port
//! - `points`: how fragments lie in points; `filters`: the tenant's filter, and what is added to it
//! - `search`: one question; `notes`: tombstones, cursors, space; `setup`: the collection

mod filters;
mod notes;
mod points;
mod search;
pub mod settings;
mod setup;
pub mod store;

pub use settings::Settings;
pub use store::QdrantRecall;

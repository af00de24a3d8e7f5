//! Long-term memory: what threads said, what was remembered, what documents say, found again by
//! words and by meaning.
//!
//! Nothing here protects anything: a store that is lost is filled again from the journal. What was
//! forgotten stays forgotten: a tombstone stops writers that come late.

mod kept;
mod query;
mod scope;

use std::fmt;

use async_trait::async_trait;
use memory_core::fragment::FragmentId;
use proto::ids::{TenantId, ThreadRef};
use proto::time::Timestamp;

use crate::BusError;

pub use kept::{BadId, Kept, call_id, document_thread, parse_id, short_id, told_id};
pub use proto::agent::Edition;
pub use query::{Filter, Hit, MOST_HITS, Query};
pub use scope::{Scope, Tombstone};

/// The longest text of one fragment, in bytes; more is cut by whoever makes fragments.
pub const LONGEST_TEXT: usize = 16 * 1024;
/// The most fragments of one call.
pub const MOST_AT_ONCE: usize = 512;

/// Whose memory is meant. It can only be made from what was authenticated: a thread that is being
/// worked on, or a caller whose key or token was checked. The adapter adds it to every question.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Access(TenantId);

impl Access {
    /// That of a thread's owner.
    pub fn of_thread(thread: &ThreadRef) -> Self {
        Self(thread.tenant.clone())
    }

    /// That of a caller who was checked.
    pub fn of_caller(tenant: TenantId) -> Self {
        Self(tenant)
    }

    /// Whose it is.
    pub fn tenant(&self) -> &TenantId {
        &self.0
    }

    /// Whether a store may take these: none of another tenant, and no more than a store takes at once.
    pub fn admits(&self, fragments: &[Kept]) -> Result<(), BusError> {
        if fragments.len() > MOST_AT_ONCE {
            return Err(BusError::TooLarge { bytes: fragments.len(), limit: MOST_AT_ONCE });
        }
        for Kept { fragment, .. } in fragments {
            if fragment.id.tenant != self.0 {
                return Err(BusError::Refused("a fragment of another tenant".to_owned()));
            }
            if fragment.text.len() > LONGEST_TEXT {
                return Err(BusError::TooLarge { bytes: fragment.text.len(), limit: LONGEST_TEXT });
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Access({})", self.0)
    }
}

/// Which vectors a store holds. Those of another model mean nothing beside them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Space {
    /// The model that makes them.
    pub model: String,
    /// How many numbers each has.
    pub dimension: usize,
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} with {} numbers", self.model, self.dimension)
    }
}

/// What became of fragments that were put.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Put {
    /// Kept.
    pub kept: usize,
    /// Dropped, because a tombstone covers them.
    pub forgotten: usize,
}

/// What a store holds of one tenant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Fragments.
    pub fragments: u64,
    /// Those with a vector.
    pub vectors: u64,
}

/// Long-term memory. Each call sees what was answered before it began. A fragment's own tenant must be
/// that of the access it comes with; another one is refused.
#[async_trait]
pub trait Recall: Send + Sync {
    /// Keeps fragments, in the place of earlier ones with the same id. A fragment that a tombstone
    /// covers is dropped, also when the tombstone is written at the same time.
    ///
    /// Answers [`BusError::Refused`] for a vector that is not of the store's [`Space`], and
    /// [`BusError::TooLarge`] beyond [`MOST_AT_ONCE`] fragments or [`LONGEST_TEXT`].
    async fn put(&self, access: &Access, fragments: Vec<Kept>) -> Result<Put, BusError>;

    /// The best fragments for a question, best first, at most `query.k` and [`MOST_HITS`]. Lists by
    /// words (BM25 with the statistics of this tenant alone) and by vector are fused and weighed as
    /// [`memory_core::ranking`] says.
    async fn query(&self, access: &Access, query: &Query) -> Result<Vec<Hit>, BusError>;

    /// Fragments by their ids, in the order asked; unknown ones are left out.
    async fn get(&self, access: &Access, ids: &[FragmentId]) -> Result<Vec<Kept>, BusError>;

    /// Fragments that fit, whenever they hold, by id; `after` is the last one of the page before.
    async fn list(
        &self,
        access: &Access,
        filter: &Filter,
        after: Option<&FragmentId>,
        limit: usize,
    ) -> Result<Vec<Kept>, BusError>;

    /// Fragments of the turns at most `reach` before and after a fragment's own, by id, without it.
    /// Of a document: the parts beside it.
    async fn neighbours(
        &self,
        access: &Access,
        id: &FragmentId,
        reach: u32,
    ) -> Result<Vec<Kept>, BusError>;

    /// Says that from `at` on fragments hold no more, because another one took their place. They
    /// are hidden from then on, and still found by who asks as of an earlier time. Unknown ones
    /// are passed over.
    async fn supersede(
        &self,
        access: &Access,
        ids: &[FragmentId],
        by: &FragmentId,
        at: Timestamp,
    ) -> Result<(), BusError>;

    /// Removes what a scope covers, and leaves a tombstone: whatever the scope covers and happened at
    /// or before `at` is dropped when somebody puts it later. Answers how many fragments went.
    async fn forget(&self, access: &Access, scope: &Scope, at: Timestamp) -> Result<u64, BusError>;

    /// The tombstones of a tenant, one of each scope, by scope.
    async fn tombstones(&self, access: &Access) -> Result<Vec<Tombstone>, BusError>;

    /// The editions of which there is a passage, in order.
    async fn editions(&self, access: &Access) -> Result<Vec<Edition>, BusError>;

    /// How much there is of a tenant.
    async fn size(&self, access: &Access) -> Result<Size, BusError>;

    /// How far a reader of the journal has come, as it wrote it down.
    async fn cursor(&self, reader: &str) -> Result<Option<String>, BusError>;

    /// Writes down how far a reader has come.
    async fn keep_cursor(&self, reader: &str, place: &str) -> Result<(), BusError>;

    /// Which vectors the store holds; none before the first.
    async fn space(&self) -> Result<Option<Space>, BusError>;

    /// From now on the store holds vectors of this space, or none. Those of another are removed, of
    /// all tenants; their fragments stay and are found by words until they are put again.
    async fn settle(&self, space: Option<Space>) -> Result<(), BusError>;
}

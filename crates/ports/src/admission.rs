//! Whether a model may be asked now, and the small values that planners agree by.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use proto::ids::TenantId;
use proto::time::Timestamp;

use crate::BusError;
use crate::model::Ear;

/// A request that wants to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// Of which endpoint.
    pub endpoint: String,
    /// Of which model.
    pub model: String,
    /// For whom; absent where there are no tenants.
    pub tenant: Option<TenantId>,
    /// A guess at its tokens, both ways.
    pub tokens: u64,
}

/// How an admitted request went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Went {
    /// It was answered, and took so many tokens where the provider told.
    Answered(Option<u64>),
    /// The provider refused it because there were too many, and may have said how long to wait.
    Throttled(Option<Duration>),
    /// Nothing is known: it was dropped, or failed in another way.
    Dropped,
}

/// Holds a place; dropping it gives the place back.
pub trait Permit: Send + Sync + fmt::Debug {
    /// Says how it went, before it is dropped.
    fn went(&mut self, went: Went);
}

/// It was waited for long enough.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the model was not asked for {} s, {because}", waited.as_secs())]
pub struct NotAdmitted {
    /// How long.
    pub waited: Duration,
    /// Why.
    pub because: String,
}

/// Lets requests through.
#[async_trait]
pub trait Admission: Send + Sync {
    /// Waits until the request may be made; `ear` is told why it waits. The wait is bounded.
    async fn admit(&self, wish: &Wish, ear: &dyn Ear) -> Result<Box<dyn Permit>, NotAdmitted>;
}

/// A value with the store's time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// What is kept, if anything.
    pub value: Option<Bytes>,
    /// The store's clock.
    pub now: Timestamp,
}

/// Small values that several processes change together. They may be lost at any time.
#[async_trait]
pub trait SharedCells: Send + Sync {
    /// What is kept under a name.
    async fn cell(&self, name: &str) -> Result<Cell, BusError>;

    /// Puts `after` in the place of `before` for `keep`, if that is still what is kept; answers
    /// whether it was.
    async fn swap_cell(
        &self,
        name: &str,
        before: Option<&Bytes>,
        after: Bytes,
        keep: Duration,
    ) -> Result<bool, BusError>;
}

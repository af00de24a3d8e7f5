//! What texts mean, as vectors.

use std::sync::Arc;

use async_trait::async_trait;

use crate::BusError;
use crate::recall::Space;

/// The most texts of one call; callers split more.
pub const MOST_TEXTS: usize = 64;

/// Makes vectors of length 1.
#[async_trait]
pub trait Embedder: Send + Sync {
    /// Which vectors it makes; none when it makes none, so that memory is found by words alone.
    async fn space(&self) -> Result<Option<Space>, BusError>;

    /// A vector for each text, in order; empty when it makes none.
    async fn embed(&self, texts: &[String]) -> Result<Vec<Arc<[f32]>>, BusError>;
}

/// Makes none: memory is found by words.
#[derive(Clone, Copy, Debug, Default)]
pub struct WordsOnly;

#[async_trait]
impl Embedder for WordsOnly {
    async fn space(&self) -> Result<Option<Space>, BusError> {
        Ok(None)
    }

    async fn embed(&self, _texts: &[String]) -> Result<Vec<Arc<[f32]>>, BusError> {
        Ok(Vec::new())
    }
}

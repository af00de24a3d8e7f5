//! Cells of one process.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use ports::BusError;
use ports::admission::{Cell, SharedCells};
use ports::clock::Clock;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// Cells that nobody else sees, by this machine's clock.
pub struct LocalCells {
    clock: Arc<dyn Clock>,
    cells: Mutex<BTreeMap<String, (Bytes, Instant)>>,
}

impl LocalCells {
    /// None kept.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, cells: Mutex::default() }
    }
}

#[async_trait]
impl SharedCells for LocalCells {
    async fn cell(&self, name: &str) -> Result<Cell, BusError> {
        let (cells, at) = (self.cells.lock().await, Instant::now());
        let kept = cells.get(name).filter(|(_, until)| *until > at);
        Ok(Cell { value: kept.map(|(value, _)| value.clone()), now: self.clock.now() })
    }

    async fn swap_cell(
        &self,
        name: &str,
        before: Option<&Bytes>,
        after: Bytes,
        keep: Duration,
    ) -> Result<bool, BusError> {
        let (mut cells, at) = (self.cells.lock().await, Instant::now());
        cells.retain(|_, (_, until)| *until > at);
        if cells.get(name).map(|(value, _)| value) != before {
            return Ok(false);
        }
        cells.insert(name.to_owned(), (after, at.checked_add(keep).unwrap_or(at)));
        Ok(true)
    }
}

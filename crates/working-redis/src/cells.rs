//! Small values that several processes change together.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use ports::BusError;
use ports::admission::{Cell, SharedCells};
use proto::time::Timestamp;

use crate::link::Again;
use crate::memory::{RedisMemory, script, span, strange};
use crate::scripts;

#[async_trait]
impl SharedCells for RedisMemory {
    async fn cell(&self, name: &str) -> Result<Cell, BusError> {
        let key = self.keys.cell(name);
        let command = script(scripts::READ_CELL, &[&key]);
        let (value, seconds, micros): (Option<Vec<u8>>, String, String) =
            self.link.ask(&command, Again::Once).await?;
        let number = |text: &str| text.parse::<i64>().map_err(|error| strange(&key, &error));
        let (seconds, micros) = (number(&seconds)?, number(&micros)?);
        let now = seconds.saturating_mul(1000).saturating_add(micros / 1000);
        Ok(Cell { value: value.map(Bytes::from), now: Timestamp(now) })
    }

    /// A swap whose answer was lost is not repeated: the second would find the first.
    async fn swap_cell(
        &self,
        name: &str,
        before: Option<&Bytes>,
        after: Bytes,
        keep: Duration,
    ) -> Result<bool, BusError> {
        let mut command = script(scripts::SWAP_CELL, &[&self.keys.cell(name)]);
        command.arg(i64::from(before.is_some()));
        command.arg(before.map(Bytes::as_ref).unwrap_or_default());
        command.arg(after.as_ref()).arg(span(keep));
        let swapped: i64 = self.link.ask(&command, Again::Never).await?;
        Ok(swapped == 1)
    }
}

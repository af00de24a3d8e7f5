//! The bus's time as this process knows it: its own clock and a measured offset.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use ports::BusError;
use ports::clock::Clock;
use ports::journal::Journal;
use proto::time::Timestamp;

pub(crate) struct ServerClock {
    clock: Arc<dyn Clock>,
    offset: AtomicI64,
}

impl ServerClock {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, offset: AtomicI64::new(0) }
    }

    /// Server time; at least `floor`, the time of the newest record that is known.
    pub(crate) fn now(&self, floor: Timestamp) -> Timestamp {
        let offset = self.offset.load(Ordering::Relaxed);
        Timestamp(self.clock.now().0.saturating_add(offset)).max(floor)
    }

    /// Measures the offset anew.
    pub(crate) async fn measure(&self, journal: &dyn Journal) -> Result<(), BusError> {
        let before = self.clock.now().0;
        let server = journal.server_time().await?.0;
        let after = self.clock.now().0;
        let middle = before.saturating_add(after.saturating_sub(before) / 2);
        self.offset.store(server.saturating_sub(middle), Ordering::Relaxed);
        Ok(())
    }
}

//! The bus's time as this process knows it: measured, and carried on by a clock that no
//! correction moves.

use std::sync::Arc;
use std::time::Duration;

use ports::BusError;
use ports::clock::Clock;
use ports::journal::Journal;
use proto::time::Timestamp;
use tokio::sync::watch;
use tokio::time::Instant;

/// Between two measurements.
pub(crate) const MEASURE_EVERY: Duration = Duration::from_secs(30);

pub(crate) struct ServerTime {
    clock: Arc<dyn Clock>,
    measured: watch::Sender<Option<(Timestamp, Instant)>>,
}

impl ServerTime {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, measured: watch::Sender::new(None) }
    }

    /// Server time; the process's own before the first measurement.
    pub(crate) fn now(&self) -> Timestamp {
        match *self.measured.borrow() {
            Some((at, then)) => at.after(then.elapsed()),
            None => self.clock.now(),
        }
    }

    /// Measures anew. The answer is taken for the time at which the question was asked: to believe
    /// that it is later than it is starts nothing late.
    pub(crate) async fn measure(&self, journal: &dyn Journal) -> Result<(), BusError> {
        let asked = Instant::now();
        let at = journal.server_time().await?;
        self.measured.send_replace(Some((at, asked)));
        Ok(())
    }
}

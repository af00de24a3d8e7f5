//! The bus's time as this process knows it: measured, and carried on by a clock that no correction
//! moves.

use std::sync::Arc;
use std::time::Duration;

use ports::BusError;
use ports::clock::Clock;
use ports::journal::Journal;
use proto::time::Timestamp;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

/// Between two measurements.
const MEASURE_EVERY: Duration = Duration::from_secs(30);

/// Server time.
pub struct ServerTime {
    clock: Arc<dyn Clock>,
    measured: watch::Sender<Option<(Timestamp, Instant)>>,
}

impl ServerTime {
    /// Not measured yet.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, measured: watch::Sender::new(None) }
    }

    /// Server time, never earlier than `floor`, the time of the newest record that is known; by the
    /// process's own clock before the first measurement.
    pub fn now(&self, floor: Timestamp) -> Timestamp {
        let now = match *self.measured.borrow() {
            Some((at, then)) => at.after(then.elapsed()),
            None => self.clock.now(),
        };
        now.max(floor)
    }

    /// Measures anew. The answer is taken for the time at which the question was asked: to believe
    /// that it is later than it is starts nothing late.
    pub async fn measure(&self, journal: &dyn Journal) -> Result<(), BusError> {
        let asked = Instant::now();
        let at = journal.server_time().await?;
        self.measured.send_replace(Some((at, asked)));
        Ok(())
    }

    /// Measures again and again, for ever.
    pub async fn keep_measuring(&self, journal: &dyn Journal) {
        loop {
            sleep(MEASURE_EVERY).await;
            if let Err(error) = self.measure(journal).await {
                tracing::warn!(%error, "the bus's time was not measured");
            }
        }
    }
}

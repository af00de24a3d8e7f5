//! The bus's time as this process knows it: measured, and carried on by a clock that no correction
//! moves.

use std::sync::Arc;
use std::time::Duration;

use ports::BusError;
use ports::clock::Clock;
use ports::journal::Journal;
use prometheus::Gauge;
use proto::time::Timestamp;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

/// Between two measurements.
const MEASURE_EVERY: Duration = Duration::from_secs(30);

/// The longest way to the bus and back that makes a good measurement; a part of the grace that lies
/// between the end of an attempt and the moment at which others believe in it.
const LONGEST_WAY: Duration = Duration::from_millis(250);

/// Server time.
pub struct ServerTime {
    clock: Arc<dyn Clock>,
    measured: watch::Sender<Option<(Timestamp, Instant)>>,
    ahead: Option<Gauge>,
}

impl ServerTime {
    /// Not measured yet.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, measured: watch::Sender::new(None), ahead: None }
    }

    /// Tells with each measurement by how many seconds this process's own clock is ahead.
    #[must_use]
    pub fn telling(self, ahead: Gauge) -> Self {
        Self { ahead: Some(ahead), ..self }
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
    /// that it is a little later than it is starts nothing late. Much later would be as bad, since
    /// what others have begun would look over: so an answer that took long, because the bus did or
    /// because this process stood still, counts only where nothing better is known.
    pub async fn measure(&self, journal: &dyn Journal) -> Result<(), BusError> {
        let (asked, own) = (Instant::now(), self.clock.now());
        let at = journal.server_time().await?;
        let took = asked.elapsed();
        self.measured.send_if_modified(|measured| {
            let better = took <= LONGEST_WAY || measured.is_none();
            if better {
                *measured = Some((at, asked));
                self.tell(own, at);
            }
            better
        });
        Ok(())
    }

    fn tell(&self, own: Timestamp, at: Timestamp) {
        let ahead_ms = own.0.saturating_sub(at.0);
        if let (Some(gauge), Ok(millis)) = (&self.ahead, i32::try_from(ahead_ms)) {
            gauge.set(f64::from(millis) / 1000.0);
        }
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

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use ports::journal::{Append, AppendError, Appended, Fence, Stored};
    use proto::ids::{Sequence, TenantId, ThreadRef};
    use proto::subject::Subject;

    use super::*;

    struct Wrong;

    impl Clock for Wrong {
        fn now(&self) -> Timestamp {
            Timestamp(5)
        }
    }

    /// A bus whose time is the test's, and whose answers take a while.
    struct Bus {
        began: Instant,
        way: Duration,
    }

    #[async_trait]
    impl Journal for Bus {
        async fn append(&self, _: Append) -> Result<Appended, AppendError> {
            Err(AppendError::NoAnswer(String::new()))
        }
        async fn read(
            &self,
            _: &ThreadRef,
            _: Sequence,
            _: Sequence,
        ) -> Result<Vec<Stored>, BusError> {
            Ok(Vec::new())
        }
        async fn last(&self, _: &Subject) -> Result<Option<Stored>, BusError> {
            Ok(None)
        }
        async fn schedule(&self, _: &ThreadRef, _: Timestamp, _: Fence) -> Result<(), AppendError> {
            Ok(())
        }
        async fn scheduled(&self, _: &ThreadRef) -> Result<Option<Timestamp>, BusError> {
            Ok(None)
        }
        async fn purge(&self, _: &ThreadRef, _: Sequence) -> Result<(), BusError> {
            Ok(())
        }
        async fn threads(&self, _: &TenantId, _: usize) -> Result<Vec<ThreadRef>, BusError> {
            Ok(Vec::new())
        }
        async fn server_time(&self) -> Result<Timestamp, BusError> {
            sleep(self.way).await;
            Ok(Timestamp(1_000_000).after(self.began.elapsed()))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_took_long_does_not_move_the_time() {
        let began = Instant::now();
        let ahead = Gauge::new("ahead", "how far").unwrap();
        let time = ServerTime::new(Arc::new(Wrong)).telling(ahead.clone());
        assert_eq!(time.now(Timestamp(0)), Timestamp(5));
        time.measure(&Bus { began, way: Duration::from_millis(100) }).await.unwrap();
        assert_eq!(time.now(Timestamp(0)), Timestamp(1_000_200));
        assert!((ahead.get() - (5.0 - 1_000_100.0) / 1000.0).abs() < 0.001, "{}", ahead.get());
        time.measure(&Bus { began, way: Duration::from_secs(8) }).await.unwrap();
        assert_eq!(time.now(Timestamp(0)), Timestamp(1_008_200), "the first one still counts");
        assert_eq!(time.now(Timestamp(2_000_000)), Timestamp(2_000_000));
    }
}

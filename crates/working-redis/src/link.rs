//! One connection shared by all requests, made again when it is lost.
//!
//! Whoever finds it lost makes the attempt; who comes meanwhile waits for it within their own
//! deadline; who comes between two attempts is refused at once with the last failure.

use std::sync::Arc;
use std::time::Duration;

use ports::BusError;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, FromRedisValue};
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout, timeout_at};

use crate::failures::{breaks_connection, meaning, meaning_at};
use crate::settings::Settings;

/// Requests that wait to be sent on one connection.
const QUEUED: usize = 1024;
const SHORTEST_PAUSE: Duration = Duration::from_millis(25);

/// Whether a request that lost its connection may be sent a second time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    /// Twice is as good as once.
    Once,
    /// The first one may have landed, and a second one would count.
    Never,
}

/// The way to the server.
#[derive(Debug)]
pub(crate) struct Link {
    client: Client,
    settings: Arc<Settings>,
    line: Mutex<Line>,
}

#[derive(Debug, Default)]
struct Line {
    connection: Option<MultiplexedConnection>,
    /// Counts connections, so that a late failure of an old one does not end its successor.
    generation: u64,
    failures: u32,
    refused: Option<(Instant, BusError)>,
}

/// Why a request was not answered.
enum Unanswered {
    /// Its connection broke.
    Broken(BusError),
    /// For another reason.
    Failed(BusError),
}

impl Link {
    pub(crate) fn new(settings: Arc<Settings>) -> Result<Self, BusError> {
        Ok(Self { client: settings.client()?, settings, line: Mutex::default() })
    }

    /// Sends a request and reads its answer, within the deadline.
    pub(crate) async fn ask<T: FromRedisValue>(
        &self,
        command: &Cmd,
        again: Again,
    ) -> Result<T, BusError> {
        let deadline = Instant::now() + self.settings.request;
        match self.ask_once(command, deadline).await {
            Ok(answer) => Ok(answer),
            Err(Unanswered::Broken(_)) if again == Again::Once => {
                self.ask_once(command, deadline).await.map_err(Unanswered::into_error)
            }
            Err(unanswered) => Err(unanswered.into_error()),
        }
    }

    async fn ask_once<T: FromRedisValue>(
        &self,
        command: &Cmd,
        deadline: Instant,
    ) -> Result<T, Unanswered> {
        let late = |_: Elapsed| Unanswered::Failed(self.late());
        let connecting = timeout_at(deadline, self.connection()).await.map_err(late)?;
        let (generation, mut connection) = connecting.map_err(Unanswered::Failed)?;
        match timeout_at(deadline, command.query_async(&mut connection)).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) if breaks_connection(&error) => {
                let line = timeout_at(deadline, self.line.lock()).await.map_err(late)?;
                self.lose(line, generation, &error);
                Err(Unanswered::Broken(meaning(&error)))
            }
            Ok(Err(error)) => Err(Unanswered::Failed(meaning(&error))),
            Err(elapsed) => {
                // Answers come in order: one that stays away stands before all later ones. A line
                // that is taken is being looked after.
                if let Ok(line) = self.line.try_lock() {
                    self.lose(line, generation, &"no answer in time");
                }
                Err(late(elapsed))
            }
        }
    }

    fn lose(&self, mut line: MutexGuard<'_, Line>, generation: u64, why: &dyn std::fmt::Display) {
        if line.generation == generation && line.connection.take().is_some() {
            tracing::warn!(server = self.settings.place(), %why, "the connection to Redis is lost");
        }
    }

    /// The connection, made first if there is none and it is time for an attempt.
    async fn connection(&self) -> Result<(u64, MultiplexedConnection), BusError> {
        let mut line = self.line.lock().await;
        if let Some(connection) = &line.connection {
            return Ok((line.generation, connection.clone()));
        }
        match &line.refused {
            Some((until, last)) if Instant::now() < *until => return Err(last.clone()),
            Some(_) | None => {}
        }
        match self.reach().await {
            Ok(connection) => {
                if line.failures > 0 || line.generation > 0 {
                    tracing::info!(server = self.settings.place(), "connected to Redis again");
                }
                let generation = line.generation + 1;
                *line =
                    Line { connection: Some(connection.clone()), generation, ..Line::default() };
                Ok((generation, connection))
            }
            Err(error) => {
                line.failures = line.failures.saturating_add(1);
                let pause = pause(line.failures, self.settings.longest_pause);
                line.refused = Some((Instant::now() + pause, error.clone()));
                Err(error)
            }
        }
    }

    /// One attempt; a connection counts when the server has answered on it.
    async fn reach(&self) -> Result<MultiplexedConnection, BusError> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.settings.attempt))
            .set_response_timeout(None)
            .set_pipeline_buffer_size(QUEUED);
        let connect = async {
            let connect = self.client.get_multiplexed_async_connection_with_config(&config);
            let mut connection = connect.await?;
            // A server that is stopped takes connections all the same.
            redis::cmd("PING").query_async::<()>(&mut connection).await?;
            Ok(connection)
        };
        match timeout(self.settings.attempt, connect).await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(error)) => Err(meaning_at(&error, &self.settings.place())),
            Err(_) => Err(self.late()),
        }
    }

    fn late(&self) -> BusError {
        let place = self.settings.place();
        BusError::Unavailable(format!("Redis at {place} did not answer in time"))
    }
}

impl Unanswered {
    fn into_error(self) -> BusError {
        match self {
            Self::Broken(error) | Self::Failed(error) => error,
        }
    }
}

/// Doubles with each failure.
fn pause(failures: u32, longest: Duration) -> Duration {
    let doubled = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
    SHORTEST_PAUSE.saturating_mul(doubled).min(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_a_bound() {
        let longest = Duration::from_secs(2);
        let pauses: Vec<_> =
            [1, 2, 3, 7, 8, 40, u32::MAX].map(|n| pause(n, longest).as_millis()).to_vec();
        assert_eq!(pauses, [25, 50, 100, 1600, 2000, 2000, 2000]);
    }
}

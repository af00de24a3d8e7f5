//! Clock and ids of one process.

use std::time::Duration;

use ports::clock::{Clock, Ids};
use proto::ids::{Nonce, ThreadId, ToolCallId};
use proto::time::Timestamp;
use tokio::time::Instant;

use crate::lock::Lock;

/// The server's time plus an offset.
#[derive(Clone, Copy, Debug)]
pub struct MemoryClock {
    base: Timestamp,
    born: Instant,
    offset_ms: i64,
}

impl MemoryClock {
    pub(super) fn new(base: Timestamp, born: Instant, offset_ms: i64) -> Self {
        Self { base, born, offset_ms }
    }
}

impl Clock for MemoryClock {
    fn now(&self) -> Timestamp {
        let server = self.base.after(self.born.elapsed());
        Timestamp(server.0.saturating_add(self.offset_ms))
    }
}

/// Names that repeat under one seed.
#[derive(Debug)]
pub struct SeededIds {
    random: Lock<fastrand::Rng>,
}

impl SeededIds {
    /// Names of `seed`. Two processes need two seeds.
    pub fn new(seed: u64) -> Self {
        Self { random: Lock::new(fastrand::Rng::with_seed(seed)) }
    }
}

impl Ids for SeededIds {
    fn nonce(&self) -> Nonce {
        let random = self.random.lock().u64(..);
        Nonce::new(format!("{random:016x}")).expect("sixteen hex digits")
    }

    fn tool_call_id(&self) -> ToolCallId {
        let mut random = self.random.lock();
        let text: String = (0..9).map(|_| random.choice(LETTERS).expect("36 letters")).collect();
        ToolCallId::new(text).expect("nine of the allowed letters")
    }

    fn thread_id(&self, now: Timestamp) -> ThreadId {
        let random = self.random.lock().u128(..);
        ThreadId::from_parts(u64::try_from(now.0).unwrap_or(0), random)
    }

    fn jitter(&self, most: Duration) -> Duration {
        let share = self.random.lock().u32(0..=1000);
        most.saturating_mul(share) / 1000
    }
}

const LETTERS: [char; 36] = [
    'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n', 'o', 'p', 'q', 'r', 's',
    't', 'u', 'v', 'w', 'x', 'y', 'z', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9',
];

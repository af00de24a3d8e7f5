//! The machine's clock and source of names.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ports::clock::{Clock, Ids};
use proto::ids::{Nonce, ThreadId, ToolCallId};
use proto::time::{Timestamp, millis};

/// The machine's wall clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place where the wall clock is read")]
    fn now(&self) -> Timestamp {
        Timestamp(millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()))
    }
}

/// Names from the operating system's randomness.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemIds;

fn random() -> u128 {
    let mut bytes = [0; 16];
    // Without randomness no two processes could be told apart; there is nothing to go on with.
    #[expect(clippy::expect_used, reason = "a machine without randomness cannot run this")]
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    u128::from_le_bytes(bytes)
}

const LETTERS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";

/// Nine letters and digits out of `random`.
pub fn call_id_from(mut random: u128) -> ToolCallId {
    let mut text = String::with_capacity(9);
    for _ in 0..9 {
        let index = usize::try_from(random % 36).unwrap_or(0);
        text.push(LETTERS.get(index).copied().map_or('a', char::from));
        random /= 36;
    }
    ToolCallId::new(text).unwrap_or_else(|_| unreachable!("nine of the allowed letters"))
}

/// A nonce out of `random`.
pub fn nonce_from(random: u128) -> Nonce {
    let low = u64::try_from(random & u128::from(u64::MAX)).unwrap_or(0);
    Nonce::new(format!("{low:016x}")).unwrap_or_else(|_| unreachable!("sixteen hex digits"))
}

impl Ids for SystemIds {
    fn nonce(&self) -> Nonce {
        nonce_from(random())
    }

    fn tool_call_id(&self) -> ToolCallId {
        call_id_from(random())
    }

    fn thread_id(&self, now: Timestamp) -> ThreadId {
        ThreadId::from_parts(u64::try_from(now.0).unwrap_or(0), random())
    }

    fn jitter(&self, most: Duration) -> Duration {
        let share = u32::try_from(random() % 1001).unwrap_or(0);
        most.saturating_mul(share) / 1000
    }
}

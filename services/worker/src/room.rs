//! Whether the machine has memory and disk for another call.

use std::time::Duration;

use rustix::fs::statvfs;
use tokio::sync::watch;
use tokio::time::Instant;

/// How old a measurement may be.
const FRESH: Duration = Duration::from_secs(1);

/// What has to be left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Least {
    /// Bytes of memory that the machine can give.
    pub memory: u64,
    /// Bytes on the disk of temporary files.
    pub disk: u64,
}

impl Default for Least {
    fn default() -> Self {
        Self { memory: 64 * 1024 * 1024, disk: 64 * 1024 * 1024 }
    }
}

/// What was measured last.
#[derive(Debug)]
pub(crate) struct RoomView {
    least: Least,
    known: watch::Sender<Option<(Instant, Option<String>)>>,
}

impl RoomView {
    pub(crate) fn new(least: Least) -> Self {
        Self { least, known: watch::Sender::default() }
    }

    /// What is short, in words.
    pub(crate) fn shortage(&self) -> Option<String> {
        let known = self.known.borrow().clone().filter(|(at, _)| at.elapsed() < FRESH);
        if let Some((_, words)) = known {
            return words;
        }
        let words = short(self.least, memory(), disk());
        self.known.send_replace(Some((Instant::now(), words.clone())));
        words
    }
}

fn short(least: Least, memory: Option<u64>, disk: Option<u64>) -> Option<String> {
    let told = |what: &str, left: Option<u64>, least: u64| {
        let left = left.filter(|left| *left < least)?;
        let mib = |bytes: u64| bytes / (1024 * 1024);
        Some(format!(
            "The worker's {what} is used up: {} of {} MiB are left.",
            mib(left),
            mib(least)
        ))
    };
    told("memory", memory, least.memory).or_else(|| told("disk", disk, least.disk))
}

fn memory() -> Option<u64> {
    let told = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = told.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kib.saturating_mul(1024))
}

fn disk() -> Option<u64> {
    let told = statvfs(std::env::temp_dir()).ok()?;
    Some(told.f_bavail.saturating_mul(told.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_short_is_named() {
        let least = Least { memory: 100 << 20, disk: 50 << 20 };
        assert_eq!(short(least, Some(100 << 20), Some(50 << 20)), None);
        assert_eq!(short(least, None, None), None);
        let words = short(least, Some(99 << 20), Some(0));
        assert_eq!(
            words.as_deref(),
            Some("The worker's memory is used up: 99 of 100 MiB are left.")
        );
        let words = short(least, Some(u64::MAX), Some(1 << 20));
        assert_eq!(words.as_deref(), Some("The worker's disk is used up: 1 of 50 MiB are left."));
    }

    #[test]
    fn this_machine_tells_both() {
        assert!(memory().is_some_and(|bytes| bytes > 0) && disk().is_some());
    }

    #[test]
    fn a_machine_without_room_says_so() {
        let view = RoomView::new(Least { memory: u64::MAX, disk: 0 });
        assert!(view.shortage().is_some_and(|words| words.contains("memory")));
    }
}

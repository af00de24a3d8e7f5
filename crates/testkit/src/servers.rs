//! Tests that need a server: they fail where servers are required, else they are counted as skipped.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The setting that makes a missing server a failure.
pub const REQUIRE: &str = "SYSTOLE_REQUIRE_SERVERS";

static SKIPPED: AtomicUsize = AtomicUsize::new(0);

/// Whether missing servers fail the tests.
#[expect(clippy::disallowed_methods, reason = "tests read this one setting from the environment")]
pub fn servers_are_required() -> bool {
    std::env::var(REQUIRE).is_ok_and(|value| value == "1")
}

/// A server that was looked for: given back if it is there. If not, the test fails where servers
/// are required, else the skip is counted and printed and the caller returns early.
#[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
pub fn require_server<T>(name: &str, found: Option<T>) -> Option<T> {
    if found.is_none() {
        assert!(!servers_are_required(), "{REQUIRE}=1 and there is no {name}");
        let count = SKIPPED.fetch_add(1, Ordering::Relaxed) + 1;
        eprintln!(
            "skipped: no {name} ({count} skipped in this process; {REQUIRE}=1 makes it fail)"
        );
    }
    found
}

/// How many tests of this process were skipped.
pub fn skipped() -> usize {
    SKIPPED.load(Ordering::Relaxed)
}

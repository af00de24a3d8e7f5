//! Tests that need a server: they fail where servers are required, else they are counted as skipped.

use std::path::PathBuf;
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

/// Where a server's program is: the variable, or the `PATH`, or where `cargo xtask setup` puts it.
#[expect(clippy::disallowed_methods, reason = "tests find their servers by the environment")]
pub fn find_server(program: &str, variable: &str) -> Option<PathBuf> {
    let set = std::env::var_os(variable).map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path: Vec<PathBuf> = std::env::split_paths(&path).map(|dir| dir.join(program)).collect();
    let test = std::env::current_exe().unwrap_or_default();
    let tools = test
        .ancestors()
        .flat_map(|dir| ["tools/venv/bin", "tools/lib/bin"].map(|bin| dir.join(bin).join(program)));
    set.into_iter().chain(on_path).chain(tools).find(|path| path.is_file())
}

/// A file that `cargo xtask setup` installs from npm, such as `@scope/package/dist/index.js`.
pub fn find_npm(file: &str) -> Option<PathBuf> {
    let test = std::env::current_exe().unwrap_or_default();
    let mut places =
        test.ancestors().map(|folder| folder.join("tools/npm/node_modules").join(file));
    places.find(|path| path.is_file())
}

/// How many tests of this process were skipped.
pub fn skipped() -> usize {
    SKIPPED.load(Ordering::Relaxed)
}

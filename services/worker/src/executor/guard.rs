//! A small process between a worker and one attempt of a command tool, so that the tool dies when
//! the worker does, however the worker ends.
//!
//! ```text
//! worker ──socket──▶ guard (watch) ──socket──▶ stage, leader of the attempt's process group
//!                                              └─ becomes the tool by exec when it is released
//! ```
//!
//! - The stage exists before the effect: its process group can be journaled, and it becomes the
//!   tool under the same number only after the worker sends the release.
//! - The worker holds the only other end of the guard's socket. When it closes, because the worker
//!   wants the attempt gone or because it is dead, the guard kills the group.
//! - The guard also kills at the attempt's limit by itself: a worker that is stopped or starved
//!   cannot stretch an attempt.
//! - A guard that is killed takes the tool along (parent-death signal); the worker kills the rest
//!   of the group.
//! - When the tool itself ends, what it left in its group is killed before the end is reported.
//!   A process that must live on, such as a service that a tool restarts, leaves the group with
//!   `setsid` and must not keep the tool's standard output.
//! - The kill is SIGKILL at once, without a chance to linger: every wait for an earlier attempt
//!   counts on its end at a known time.
//!
//! The environment and the working folder are the tool's own and are inherited all the way.
//! Core dumps are switched off. Privileges are left alone: tools for operators may need `sudo`.

mod stage;
mod watch;
pub(crate) mod wire;

use std::ffi::OsString;
use std::process::ExitCode;

pub(crate) use stage::input_file;

/// The subcommand under which a program must call [`main`].
pub const SUBCOMMAND: &str = "guard";

/// Word for the guard's first part.
pub(crate) const WATCH: &str = "watch";
/// Word for the guard of a server, whose standard input and output are one socket.
pub(crate) const SERVE: &str = "serve";
/// Word for its second part.
const STAGE: &str = "stage";
/// Word for the second part of a server's guard.
const SERVER: &str = "server";

/// Runs a guard; `args` are those after [`SUBCOMMAND`]. Call it from the main thread, before
/// anything else is set up: the parent-death signal of the tool is bound to the calling thread,
/// and the surrounding environment is the tool's, not the program's.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut args = args.into_iter();
    let word = args.next();
    let word = word.as_deref().and_then(|word| word.to_str());
    let done = match word {
        Some(WATCH) => watch::run(STAGE, args),
        Some(SERVE) => watch::run(SERVER, args),
        Some(STAGE) => stage::run(stage::Input::Given, args),
        Some(SERVER) => stage::run(stage::Input::Output, args),
        Some(_) | None => return ExitCode::from(USAGE),
    };
    if done.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Exit code for a wrong command line.
const USAGE: u8 = 2;

//! The guard's second part: holds the attempt's process group, and becomes the tool when released.

use std::ffi::OsString;
use std::io::{self, Seek as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{
    Resource, Rlimit, Signal, getppid, set_parent_process_death_signal, setrlimit,
};
use rustix::stdio::dup2_stdin;

use super::watch::control;
use super::wire::{Release, Report};

/// What a tool reads on its standard input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Input {
    /// What comes with the release.
    Given,
    /// The socket that is its standard output too: it is a server that is talked with.
    Output,
}

/// Waits for the release on standard input, then becomes the tool; returns when it could not.
pub(super) fn run(from: Input, mut args: impl Iterator<Item = OsString>) -> io::Result<()> {
    let parent = args.next();
    let mut guard = control()?;
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // A guard that died before the line above sends no signal.
    let now = getppid().map(|pid| pid.to_string().into());
    if now != parent {
        return Ok(());
    }
    // A guard that closes its socket wants nothing to begin.
    let Ok(release) = Release::read(&mut guard) else { return Ok(()) };
    let report = become_tool(args, from, &release.input);
    tell(&mut guard, &report)
}

/// Returns only on failure.
fn become_tool(mut args: impl Iterator<Item = OsString>, from: Input, input: &[u8]) -> Report {
    let program = args.next().unwrap_or_default();
    let offered = match from {
        Input::Given => offer_input(input),
        Input::Output => dup2_stdin(io::stdout().as_fd()).map_err(io::Error::from),
    };
    if let Err(error) = offered.and_then(|()| no_core_dump()) {
        return Report::refused("the process could not be prepared", &error);
    }
    let error = Command::new(&program).args(args).exec();
    Report::refused(&format!("`{}` could not be started", program.display()), &error)
}

/// Puts `input` on standard input as an anonymous file: a tool that does not read it blocks nobody.
fn offer_input(input: &[u8]) -> io::Result<()> {
    dup2_stdin(input_file(input)?.as_fd())?;
    Ok(())
}

/// An anonymous file that holds `input`, at its start.
pub(crate) fn input_file(input: &[u8]) -> io::Result<std::fs::File> {
    let mut file = std::fs::File::from(memfd_create("tool-input", MemfdFlags::CLOEXEC)?);
    file.write_all(input)?;
    file.rewind()?;
    Ok(file)
}

fn no_core_dump() -> io::Result<()> {
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    Ok(())
}

fn tell(guard: &mut UnixStream, report: &Report) -> io::Result<()> {
    guard.write_all(report.line().as_bytes())
}

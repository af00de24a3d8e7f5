//! The guard's first part: starts the stage, and lets it live as long as it may.

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, id};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus, getpid, kill_process_group,
    set_child_subreaper, waitid, waitpgid,
};

use super::SUBCOMMAND;
use super::wire::{Release, Report};

/// What can happen to an attempt.
enum Event {
    /// The worker released it.
    Released(Release),
    /// The worker wants it gone, or is dead.
    Gone,
    /// The stage's last word: nothing when it became the tool, else why it could not.
    StageSaid(String),
    /// The tool's process ended; it is not yet reaped, so its number is still its own.
    Ended,
    /// Its time is over.
    Late,
}

/// Guards one attempt until it is over; standard input is the socket to the worker.
pub(super) fn run(stage: &str, args: impl Iterator<Item = OsString>) -> io::Result<()> {
    let mut worker = control()?;
    // Orphans of the group become children of this process, which can then wait for their end.
    set_child_subreaper(Some(getpid()))?;
    let stage = match Stage::start(stage, args) {
        Ok(stage) => stage,
        Err(error) => {
            let refused = Report::refused("the process could not be made", &error);
            return worker.write_all(refused.line().as_bytes());
        }
    };
    worker.write_all(Report::Ready(stage.group.as_raw_nonzero().get()).line().as_bytes())?;
    let (tell, events) = channel();
    listen(worker.try_clone()?, tell.clone())?;
    let report = stage.attend(&events, &tell)?;
    worker.write_all(report.line().as_bytes())
}

/// A copy of standard input that no child inherits.
pub(super) fn control() -> io::Result<UnixStream> {
    io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from)
}

/// Hears the worker: one release at most, then the end of its socket.
fn listen(mut worker: UnixStream, tell: Sender<Event>) -> io::Result<()> {
    on_thread(move || {
        if let Ok(release) = Release::read(&mut worker) {
            send(&tell, Event::Released(release));
            // Whatever else a worker might send, only the end of its socket counts.
            drop(io::copy(&mut worker, &mut io::sink()));
        }
        send(&tell, Event::Gone);
    })
}

/// The process that becomes the tool.
struct Stage {
    /// Its process group, equal to its number.
    group: Pid,
    socket: UnixStream,
}

impl Stage {
    fn start(stage: &str, args: impl Iterator<Item = OsString>) -> io::Result<Self> {
        let (socket, its_end) = UnixStream::pair()?;
        let child = Command::new("/proc/self/exe")
            .args([SUBCOMMAND, stage, &id().to_string()])
            .args(args)
            .stdin(OwnedFd::from(its_end))
            .process_group(0)
            .spawn()?;
        Ok(Self { group: Pid::from_child(&child), socket })
    }

    /// Waits for the end, makes sure of it, and says what it was.
    fn attend(mut self, events: &Receiver<Event>, tell: &Sender<Event>) -> io::Result<Report> {
        hear_stage(self.socket.try_clone()?, tell.clone())?;
        notice_end(self.group, tell.clone())?;
        let mut last_word = None;
        for event in events {
            match event {
                Event::Released(release) => self.release(&release, tell)?,
                Event::StageSaid(word) => last_word = Some(word),
                Event::Gone | Event::Ended | Event::Late => break,
            }
        }
        let ended = end_group(self.group);
        // The stage's end of the socket is closed now, by exec or by its death.
        let word = last_word.unwrap_or_else(|| wait_for_last_word(events));
        Ok(Report::parse(word.trim_end()).unwrap_or(ended))
    }

    fn release(&mut self, release: &Release, tell: &Sender<Event>) -> io::Result<()> {
        let (limit, tell) = (release.limit, tell.clone());
        on_thread(move || {
            thread::sleep(limit);
            send(&tell, Event::Late);
        })?;
        // A stage that is already dead cannot take it; its end is an event of its own.
        drop(self.socket.write_all(&release.encode()));
        Ok(())
    }
}

fn hear_stage(mut socket: UnixStream, tell: Sender<Event>) -> io::Result<()> {
    on_thread(move || {
        let mut word = Vec::new();
        drop(socket.read_to_end(&mut word));
        send(&tell, Event::StageSaid(String::from_utf8_lossy(&word).into_owned()));
    })
}

fn notice_end(process: Pid, tell: Sender<Event>) -> io::Result<()> {
    on_thread(move || {
        let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(process), how) {}
        send(&tell, Event::Ended);
    })
}

fn wait_for_last_word(events: &Receiver<Event>) -> String {
    let words = events.iter().filter_map(|event| match event {
        Event::StageSaid(word) => Some(word),
        Event::Released(_) | Event::Gone | Event::Ended | Event::Late => None,
    });
    words.take(1).next().unwrap_or_default()
}

/// Kills the group, waits until no process of it is left, and tells how its leader ended.
fn end_group(group: Pid) -> Report {
    // The leader is not reaped yet, so the number cannot belong to anybody else.
    kill_process_group(group, Signal::KILL).ok();
    let mut ended = Report::Killed(Signal::KILL.as_raw());
    loop {
        match waitpgid(group, WaitOptions::empty()) {
            Ok(Some((process, status))) if process == group => ended = how(status),
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) | Err(_) => return ended,
        }
    }
}

fn how(status: WaitStatus) -> Report {
    let killed = status.terminating_signal().map(Report::Killed);
    killed.or_else(|| status.exit_status().map(Report::Exited)).unwrap_or(Report::Exited(-1))
}

/// A guard that cannot make a thread gives up; the stage then ends with it.
fn on_thread(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().stack_size(THREAD_STACK).spawn(work).map(drop)
}

/// Nobody listens any more only when the attempt is over.
fn send(tell: &Sender<Event>, event: Event) {
    drop(tell.send(event));
}

const THREAD_STACK: usize = 128 * 1024;

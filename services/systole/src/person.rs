//! The person at the terminal: answers to questions, read line by line. A line answers the question
//! that was on the screen when it was typed and no other.

use std::io::{self, BufRead, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{QueueSelector, tcflush};
use tokio::sync::mpsc as async_mpsc;

/// How long the terminal is listened to before the question is looked at again.
const LISTEN: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// A person who can be asked.
pub(crate) struct Person {
    ask: mpsc::Sender<u64>,
    lines: async_mpsc::UnboundedReceiver<(u64, String)>,
    /// The question that is on the screen.
    current: Arc<AtomicU64>,
    question: u64,
}

impl Person {
    /// The person at the terminal, if there is one that sees the question and can answer.
    pub(crate) fn present() -> Option<Self> {
        let here = io::stdin().is_terminal() && io::stdout().is_terminal();
        here.then(Self::listening)
    }

    /// Reading blocks, so it has a thread of its own, which ends with the process.
    fn listening() -> Self {
        let (ask, asked) = mpsc::channel();
        let (tell, lines) = async_mpsc::unbounded_channel();
        let current = Arc::new(AtomicU64::new(0));
        let open = Arc::clone(&current);
        std::thread::spawn(move || {
            while let Ok(question) = asked.recv() {
                let is_open = || open.load(Ordering::Acquire) == question;
                let Some(line) = read_line(&is_open) else { continue };
                let end = line.is_empty();
                if tell.send((question, line)).is_err() || end {
                    break;
                }
            }
        });
        Self { ask, lines, current, question: 0 }
    }

    /// Begins a question, which is to be put on the screen after this: whatever was typed before is
    /// no answer to it and is thrown away.
    pub(crate) fn begin(&mut self) {
        self.question = self.question.saturating_add(1);
        self.current.store(self.question, Ordering::Release);
        if let Err(error) = tcflush(io::stdin(), QueueSelector::IFlush) {
            tracing::warn!(%error, "what was typed before the question is not thrown away");
        }
        // Nobody listens any more: the answer is that the input ended.
        self.ask.send(self.question).unwrap_or_default();
    }

    /// Waits for yes or no to the question that was begun. May be dropped and called again.
    pub(crate) async fn answer(&mut self) -> Answer {
        loop {
            match self.lines.recv().await {
                Some((question, line)) if question == self.question => return meant(&line),
                // Typed for a question that was settled otherwise. The end of the input stays.
                Some((_, line)) if !line.is_empty() => {}
                Some(_) | None => return Answer::Ended,
            }
        }
    }
}

/// A line that is typed while the question is open; empty when the input ended.
fn read_line(is_open: &dyn Fn() -> bool) -> Option<String> {
    let stdin = io::stdin();
    while is_open() {
        let mut terminal = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut terminal, Some(&LISTEN)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            // A terminal has whole lines, so this does not wait.
            Ok(_) => {
                let mut line = String::new();
                let read = stdin.lock().read_line(&mut line);
                return Some(read.map_or_else(|_gone| String::new(), |_| line));
            }
            Err(_) => return Some(String::new()),
        }
    }
    None
}

/// What a person says to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Yes, clearly.
    Yes,
    /// Anything else.
    No,
    /// The input ended: there is nobody any more.
    Ended,
}

/// A line without its end is what Ctrl-D leaves.
fn meant(line: &str) -> Answer {
    if is_yes(line) {
        Answer::Yes
    } else if line.is_empty() {
        Answer::Ended
    } else {
        Answer::No
    }
}

fn is_yes(line: &str) -> bool {
    ["y", "yes"].contains(&line.trim().to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_agrees() {
        assert!([" y\n", "YES\n"].iter().all(|line| is_yes(line)));
        assert!(!["", "\n", "n\n", "yep\n", "y es\n"].iter().any(|line| is_yes(line)));
        assert_eq!(["", "\n"].map(meant), [Answer::Ended, Answer::No]);
    }
}

//! The person at the terminal: answers to questions, read line by line.

use std::io::{self, BufRead, IsTerminal};
use std::sync::mpsc;

use tokio::sync::mpsc as async_mpsc;

/// A person who can be asked.
pub(crate) struct Person {
    ask: mpsc::Sender<()>,
    lines: async_mpsc::UnboundedReceiver<String>,
    is_reading: bool,
}

impl Person {
    /// The person at the terminal, if there is one that sees the question and can answer.
    pub(crate) fn present() -> Option<Self> {
        let here = io::stdin().is_terminal() && io::stdout().is_terminal();
        here.then(Self::listening)
    }

    /// Reading blocks and cannot be called off, so it has a thread of its own, which ends with the
    /// process.
    fn listening() -> Self {
        let (ask, asked) = mpsc::channel();
        let (tell, lines) = async_mpsc::unbounded_channel();
        std::thread::spawn(move || {
            while asked.recv().is_ok() {
                let mut line = String::new();
                let end = io::stdin().lock().read_line(&mut line).map_or(true, |bytes| bytes == 0);
                if tell.send(line).is_err() || end {
                    break;
                }
            }
        });
        Self { ask, lines, is_reading: false }
    }

    /// Waits for yes or no. May be dropped and asked again: what is typed then answers the newest
    /// question.
    pub(crate) async fn answer(&mut self) -> Answer {
        if !self.is_reading {
            self.is_reading = self.ask.send(()).is_ok();
        }
        let line = self.lines.recv().await;
        self.is_reading = false;
        line.map_or(Answer::Ended, |line| meant(&line))
    }
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

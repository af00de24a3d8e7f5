//! What people and programs see of a thread.
//!
//! - [`text`], [`style`]: one piece of text · [`canvas`]: lines that stay and rows drawn anew
//! - [`call_line`]: a tool call in one line · [`summary`]: the closing lines
//! - [`steps`]: a thought in its four steps
//! - [`human`]: events as running text · [`json`]: events as lines of JSON

pub(crate) mod call_line;
pub(crate) mod canvas;
pub(crate) mod human;
pub(crate) mod json;
pub(crate) mod reply;
mod steps;
pub(crate) mod style;
pub(crate) mod summary;
pub(crate) mod text;
mod words;

use std::io;

use planner_core::Thread;
use planner_core::thread::Call;
use proto::event::ThreadEvent;
use proto::time::Timestamp;

/// Shows a thread. An error means that nobody looks any more.
pub(crate) trait View: Send {
    /// One event; `thread` is folded up to it.
    fn event(&mut self, event: &ThreadEvent, thread: &Thread) -> io::Result<()>;

    /// Time has passed.
    fn tick(&mut self, now: Timestamp) -> io::Result<()>;

    /// A word of the program itself.
    fn note(&mut self, text: &str) -> io::Result<()>;

    /// Why something takes longer, while it does.
    fn notice(&mut self, text: &str) -> io::Result<()>;

    /// Asks for a word on a call and leaves the cursor behind the question. Answers whether anybody
    /// can be asked.
    fn ask(&mut self, call: &Call, now: Timestamp) -> io::Result<bool>;

    /// The question was answered with a line.
    fn answered(&mut self) {}

    /// The run is left unfinished; `command` goes on with it.
    fn left(&mut self, thread: &Thread, command: &str) -> io::Result<()>;

    /// What to do next, for people.
    fn hint(&mut self, text: &str) -> io::Result<()>;
}

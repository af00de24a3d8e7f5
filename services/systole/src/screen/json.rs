//! Events as lines of JSON, for programs.

use std::io::{self, Write};

use planner_core::Thread;
use planner_core::thread::Call;
use proto::event::ThreadEvent;
use proto::time::Timestamp;
use serde::Serialize;
use serde_json::json;

use super::View;

/// One event a line.
pub(crate) struct JsonView<W> {
    out: W,
}

impl<W: Write> JsonView<W> {
    pub(crate) fn new(out: W) -> Self {
        Self { out }
    }

    fn line(&mut self, value: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(value)?;
        line.push(b'\n');
        self.out.write_all(&line)?;
        self.out.flush()
    }
}

impl<W: Write + Send> View for JsonView<W> {
    fn event(&mut self, event: &ThreadEvent, _: &Thread) -> io::Result<()> {
        self.line(event)
    }

    fn tick(&mut self, _: Timestamp) -> io::Result<()> {
        Ok(())
    }

    /// Notes are for people: the stream has events only.
    fn note(&mut self, _: &str) -> io::Result<()> {
        Ok(())
    }

    /// The stream has events only; whoever looks for a reason looks into the log.
    fn notice(&mut self, text: &str) -> io::Result<()> {
        tracing::warn!("{text}");
        Ok(())
    }

    fn ask(&mut self, _: &Call, _: Timestamp) -> io::Result<bool> {
        Ok(false)
    }

    fn left(&mut self, thread: &Thread, command: &str) -> io::Result<()> {
        let thread = thread.place.thread;
        self.line(&json!({"type": "interrupted", "thread": thread, "continue": command}))
    }

    fn hint(&mut self, _: &str) -> io::Result<()> {
        Ok(())
    }
}

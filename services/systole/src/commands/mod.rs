//! One file per command.

pub(crate) mod agents;
pub(crate) mod approve;
pub(crate) mod cancel;
pub(crate) mod clients;
pub(crate) mod demo;
pub(crate) mod dev;
pub(crate) mod freeze;
pub(crate) mod gateway;
pub(crate) mod import;
pub(crate) mod manual;
pub(crate) mod memory;
pub(crate) mod new;
pub(crate) mod planner;
pub(crate) mod rehearse;
pub(crate) mod run;
pub(crate) mod show;
pub(crate) mod threads;
pub(crate) mod tools;
pub(crate) mod worker;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;

use crate::arguments::{Common, STORE_VARIABLE, USUAL_STORE};
use crate::failure::Failure;
use crate::screen::View;
use crate::screen::canvas::{Canvas, Columns, terminal_columns};
use crate::screen::human::HumanView;
use crate::screen::json::JsonView;
use crate::screen::style::Palette;
use crate::settings::Environment;
use crate::shell;

/// What every command is given.
pub(crate) struct Context {
    pub(crate) common: Common,
    pub(crate) environment: Environment,
    /// How this program was called.
    pub(crate) program: OsString,
}

impl Context {
    /// The colours of standard output.
    pub(crate) fn palette(&self) -> Palette {
        Palette::new(self.environment.wants_colours(self.common.color))
    }

    /// A view of a running thread on standard output.
    pub(crate) fn view(&self, json: bool) -> Box<dyn View> {
        if json {
            return Box::new(JsonView::new(io::stdout()));
        }
        let live = io::IsTerminal::is_terminal(&io::stdout());
        let live = live && self.environment.has_smart_terminal();
        let columns: Option<Columns> = if live { Some(terminal_columns) } else { None };
        Box::new(HumanView::new(Canvas::new(io::stdout(), columns), self.palette()))
    }

    /// The program with the flags that lead to the same store. `command` is already quoted: its
    /// words come from [`shell`].
    pub(crate) fn same_store(&self, command: &str) -> String {
        let program = shell::word(&self.program);
        let store = &self.common.store;
        if store == Path::new(USUAL_STORE) && !self.environment.is_set(STORE_VARIABLE) {
            return format!("{program} {command}");
        }
        format!("{program} --store {} {command}", shell::word(store))
    }
}

/// Prints what a command has to say. Whoever closes the pipe has seen enough.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    match io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Failure::other("standard output", error)),
    }
}

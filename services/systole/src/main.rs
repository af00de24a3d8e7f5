//! The one binary: command line and all-in-one mode.
//!
//! Reading order: [`arguments`] · [`commands`], one file each · [`launch`]: from an agent to its end
//! · [`session`]: one watched run · [`follow`], [`screen`]: what is seen · [`engine`], [`staff`],
//! [`wiring`]: what runs · [`control`]: the door to a running process · [`demo`]: the demo's world ·
//! [`mod@bench`]: what it reaches · [`nodes`]: processes of a distributed deployment
//! · [`doctor`]: what they guarantee, [`drill`]: what is left of it when they are killed

mod agent_files;
mod arguments;
mod bench;
mod commands;
mod control;
mod demo;
mod doctor;
mod drill;
mod engine;
mod failure;
mod file_kind;
mod follow;
mod heard;
mod inputs;
mod interrupts;
mod launch;
mod models;
mod nodes;
mod notices;
mod person;
mod program;
mod programs;
mod remembered;
mod scope;
mod screen;
mod session;
mod settings;
mod shell;
mod staff;
mod stand_ins;
mod steered;
mod telemetry;
mod threads;
mod versions;
mod watched;
mod wiring;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    // Before all else: the guard's surroundings are those of the tool it becomes.
    if words.next().is_some_and(|word| word == worker::executor::guard::SUBCOMMAND) {
        return worker::executor::guard::main(words);
    }
    program::main()
}

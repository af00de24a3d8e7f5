//! The project's own chores, so that they need no tool but Cargo: `cargo xtask help`.
//!
//! In reading order: [`house`] (where things lie), [`process`] (how programs are started),
//! [`setup`] (tools from the ordinary registries), [`steps`] (one function per chore),
//! [`simulate`] and [`mutants`], [`streams`], [`workers`] (of three languages, held against the protocol), [`tidy`] (rules that no other tool knows), `up` (what
//! docker-compose.yml says, without an engine).

pub mod cli;
pub mod house;
pub mod mutants;
pub mod process;
pub mod real_model;
pub mod servers;
pub mod setup;
pub mod simulate;
pub mod steps;
pub mod streams;
pub mod tidy;
mod up;
pub mod workers;

pub use cli::main;

/// Says a line to the person who started the command.
#[expect(clippy::print_stdout, reason = "a command-line tool speaks on its standard output")]
pub fn say(line: &str) {
    println!("{line}");
}

/// Says what went wrong; kept apart from the output that somebody may pipe.
#[expect(clippy::print_stderr, reason = "a command-line tool complains on its standard error")]
pub fn complain(line: &str) {
    eprintln!("{line}");
}

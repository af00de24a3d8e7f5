//! `worker-conformance -- CMD`: drives a worker of any language through the rules of
//! `proto/PROTOCOL.md` against a real NATS server, and says which of them it keeps.
//!
//! It plays the planner and the other workers: it writes calls, start records, hints and freezes as
//! they lie on the wire, and reads what the worker makes of them. Of the worker it knows nothing but
//! the command that starts it, and what its tools do (`tools.rs`).
//!
//! Reading order: `cli` · `stage` one server with one worker · `bus` the planner's side of the wire ·
//! `calls` one call and what comes of it · `rules` the rules, by what they are about.

mod bus;
mod calls;
mod cli;
mod proxy;
mod rules;
mod server;
mod stage;
mod tools;
mod traffic;
mod worker;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}

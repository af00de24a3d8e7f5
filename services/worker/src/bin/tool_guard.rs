//! A guard to start tools under, for tests of the worker, and a worker that a test can kill.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|word| word == worker::executor::guard::SUBCOMMAND) {
        worker::executor::guard::main(args)
    } else {
        ExitCode::FAILURE
    }
}

//! The project's own chores: `cargo xtask help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    match xtask::main(std::env::args_os()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            xtask::complain(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

//! The project's own chores: cargo xtask help.
fn main() {}

//! The one binary: command line and all-in-one mode.
fn main() {}

//! Whole-program tests: real binaries, free ports, own folders, kill -9.

//! Whole-program tests: the real program, free ports, own folders, kill -9. All of it is in `tests`.

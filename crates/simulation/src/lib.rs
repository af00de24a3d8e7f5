//! Seeded worlds: real planners and workers over a simulated bus in virtual time.

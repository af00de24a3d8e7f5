//! The planner's loop over fakes, in virtual time.
#![cfg(test)]

mod snapshots;
mod turns;
mod world;

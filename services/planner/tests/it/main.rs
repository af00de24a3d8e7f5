//! The planner's loop over fakes, in virtual time.
#![cfg(test)]

mod checkpoints;
mod delays;
mod large;
mod memory;
mod owners;
mod restored;
mod snapshots;
mod turns;
mod world;

//! The planner's loop over fakes, in virtual time.
#![cfg(test)]

mod checkpoints;
mod delays;
mod memory;
mod large;
mod owners;
mod restored;
mod snapshots;
mod turns;
mod world;

//! The planner's loop over fakes, in virtual time.
#![cfg(test)]

mod turns;
mod world;

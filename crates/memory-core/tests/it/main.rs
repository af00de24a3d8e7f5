//! What memory-core promises.
#![cfg(test)]

mod evals;
mod facts;
mod kinds;
mod rankings;
mod scores;

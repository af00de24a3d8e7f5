//! What memory-core promises.
#![cfg(test)]

mod facts;
mod kinds;
mod rankings;
mod scores;

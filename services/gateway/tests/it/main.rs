//! The gateway over a bus in memory, asked over real HTTP.
#![cfg(test)]

mod approving;
mod cancelling;
mod client;
mod contract;
mod events;
mod inputs;
mod limits;
mod memory;
mod tenants;
mod world;

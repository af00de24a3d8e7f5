//! The reader over bodies as providers send them, and the client against a real server.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "all of it is tests"
)]

mod client; // over real sockets
mod embedding; // vectors of texts
mod histories; // properties: rules of each family of endpoints
mod reader; // stories: body in, events out
mod server; // a server that controls every byte
mod splits; // properties: cuts, noise, size
mod told; // what is told while a request is made
mod wire; // requests

//! The reader over bodies as providers send them, and the client against a real server.

mod client; // over real sockets
mod reader; // stories: body in, events out
mod server; // a server that controls every byte
mod splits; // properties: cuts, noise, size
mod wire; // requests

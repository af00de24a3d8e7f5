//! The bus over real NATS servers, each on a free port with a folder of its own.
#![cfg(test)]

mod conformance;
mod layout;
mod logins;
mod server;

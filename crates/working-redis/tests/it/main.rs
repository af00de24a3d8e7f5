//! Working memory over real servers, each on a free port with a folder of its own.
#![cfg(test)]

mod conformance;
mod logins;
mod losses;
mod outages;
mod proxy;
mod server;
mod starting;

//! Long-term memory over real files.
#![cfg(test)]

mod conformance;
mod erasing;

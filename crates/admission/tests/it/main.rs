//! Admission in virtual time.
#![cfg(test)]

mod clients;
mod pools;
mod provider;

//! Drives tool-core: claim, run, record, report, ack.

pub mod executor;

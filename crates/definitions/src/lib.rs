//! What people write: agent and tool files, checked, with file, line, field and fix; pure.

pub mod run;

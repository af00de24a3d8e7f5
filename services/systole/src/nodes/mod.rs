//! Processes of a distributed deployment: each finds its settings, connects, works and stops in two
//! steps.
//!
//! Reading order: [`catalogue`]: every setting with its three spellings · [`sources`]: file,
//! environment, flags · [`settings`]: values, checked all at once · [`process`]: from a connected
//! process to its end · [`memoryless`]: working memory that is not there · [`agents`]: the agents
//! of a folder · [`kill`], [`kill_ports`]: where a drill ends a process ·
//! [`skew`]: a clock that it makes wrong

pub(crate) mod agents;
pub(crate) mod catalogue;
pub(crate) mod kill;
mod kill_memory;
pub(crate) mod kill_ports;
pub(crate) mod memoryless;
pub(crate) mod process;
pub(crate) mod settings;
pub(crate) mod skew;
pub(crate) mod sources;

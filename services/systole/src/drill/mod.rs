//! `systole drill`: real servers and real processes, ended at every point at which they act, and what
//! was left of the promises.
//!
//! Reading order: [`command`] · [`cells`]: what is tried · [`cell`], [`fault`]: one of them, by its [`client`] · [`world`],
//! [`servers`]: its processes · [`judge`]: what is counted · [`report`]: the matrix

pub(crate) mod cell;
pub(crate) mod cells;
pub(crate) mod client;
pub(crate) mod command;
pub(crate) mod fault;
pub(crate) mod judge;
pub(crate) mod proxy;
pub(crate) mod report;
pub(crate) mod servers;
pub(crate) mod world;

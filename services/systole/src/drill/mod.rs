//! `systole drill`: real servers and real processes, ended at every point at which they act, and what
//! was left of the promises.
//!
//! Reading order: [`command`] · [`cells`]: what is killed where · [`cell`]: one of them, in rounds, by its
//! [`client`] and its [`people`] · [`fault`]: what else happens: [`outage`], [`tail`], [`replay`], [`twice`],
//! [`late`], [`silent`], [`other`], [`clocks`], [`cluster`], [`shared`] · [`stage`], [`world`],
//! [`servers`]: processes of a row · [`judge`],
//! [`after`]: what is counted · [`report`]: the matrix

mod after;
mod cell;
mod cells;
mod client;
mod clocks;
mod cluster;
pub(crate) mod command;
mod fault;
mod judge;
mod late;
mod other;
mod outage;
mod people;
#[cfg(test)]
mod planted;
mod proxy;
mod replay;
mod report;
pub(crate) mod servers;
mod shared;
mod silent;
mod stage;
mod tail;
mod twice;
mod wire;
pub(crate) mod world;

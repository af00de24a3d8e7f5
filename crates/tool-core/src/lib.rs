//! What a tool call may do next on a worker; pure.
//!
//! [`decide::decide`] takes what is known of a call and answers with one step: a look at something
//! that is not known yet, or an act. The worker carries the step out, adds what it learned and
//! asks again, so the order of looks and acts stands here and a crash between any two of them is a
//! row of the table.
//!
//! Reading order: [`decide`] · [`answer`] and [`doubt`]: what a call is answered with · [`outcome`]:
//! what follows the end of an attempt, with [`retry`] and [`receipt`] · [`resource`]: one mutation at a
//! time · [`breaker`] · [`freeze`] · [`shape`] and
//! [`redact`]: what a result looks like when it leaves the worker

pub mod answer;
mod bound;
pub mod breaker;
pub mod decide;
pub mod doubt;
pub mod freeze;
pub mod outcome;
pub mod receipt;
pub mod redact;
pub mod resource;
pub mod retry;
pub mod shape;

#[cfg(test)]
mod fixtures;

//! `systole doctor`: what a deployment really guarantees.
//!
//! In reading order: [`facts`] (what is known), `bus`, `memory`, `store` (what follows from it, pure),
//! [`finding`] (everything that can be found), [`report`], [`command`].

mod bus;
pub(crate) mod command;
pub(crate) mod facts;
pub(crate) mod finding;
mod memory;
pub(crate) mod report;
mod store;
#[cfg(test)]
mod tests;

use self::facts::{Deployment, Embedded};
use self::finding::Finding;

/// Judges a distributed deployment; worst first.
pub(crate) fn judge(deployment: &Deployment) -> Vec<Finding> {
    sorted([bus::judge(deployment), memory::judge(&deployment.memory)].concat())
}

/// Judges a store in one file; worst first.
pub(crate) fn judge_store(embedded: &Embedded) -> Vec<Finding> {
    sorted(store::judge(embedded))
}

fn sorted(mut findings: Vec<Finding>) -> Vec<Finding> {
    findings.sort_by_key(|finding| finding.kind.severity());
    findings
}

/// Bytes for people.
fn size(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = units.iter().find(|(shift, _)| bytes >> shift > 0);
    unit.map_or_else(
        || format!("{bytes} bytes"),
        |(shift, unit)| format!("{} {unit}", bytes >> shift),
    )
}

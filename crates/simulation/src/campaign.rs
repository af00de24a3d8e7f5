//! Many worlds, or one of them again: what the program does.

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::fault_kind::FaultKind;
use crate::totals::Totals;
use crate::{branches, say, world};

/// A run that is to prove that every kind of fault and every branch is reached has this many worlds.
const COVERS_ALL: u64 = 5_000;
/// A rule was broken.
const VIOLATED: u8 = 3;
/// A kind of fault or a branch was never reached.
const UNREACHED: u8 = 4;

/// Which worlds to run.
#[derive(Clone, Copy, Debug)]
pub struct Campaign {
    /// How many.
    pub seeds: u64,
    /// The first seed.
    pub start: u64,
    /// Whether to go on after a broken rule.
    pub keep_going: bool,
    /// Worlds at the same time.
    pub threads: usize,
}

/// Runs one world and tells its story.
pub fn replay(seed: u64) -> ExitCode {
    let report = world::run(seed, true);
    for line in &report.log {
        say(line);
    }
    say(&format!("seed {seed}: {:?} after {:?}", report.totals, report.lasted));
    match report.violation {
        Some(violation) => {
            say(&format!("seed {seed}: violated {}: {}", violation.rule, violation.why));
            ExitCode::from(VIOLATED)
        }
        None => ExitCode::SUCCESS,
    }
}

/// Runs the worlds and tells what they reached.
pub fn run(campaign: Campaign) -> ExitCode {
    let next = AtomicU64::new(campaign.start);
    let end = campaign.start.saturating_add(campaign.seeds);
    let failed = AtomicU64::new(u64::MAX);
    let totals = thread::scope(|scope| {
        let shares: Vec<_> = (0..campaign.threads.max(1))
            .map(|_| scope.spawn(|| share(&next, end, &failed, campaign.keep_going)))
            .collect();
        let mut totals = Totals::default();
        for share in shares {
            totals.merge(&share.join().expect("a share of worlds ran to its end"));
        }
        totals
    });
    for line in totals.lines() {
        say(&line);
    }
    let failed = failed.load(Ordering::Relaxed);
    if failed != u64::MAX {
        return report_failure(failed);
    }
    report_coverage(&totals)
}

/// Takes seeds until none is left or one has failed.
fn share(next: &AtomicU64, end: u64, failed: &AtomicU64, keep_going: bool) -> Totals {
    let mut totals = Totals::default();
    while keep_going || failed.load(Ordering::Relaxed) == u64::MAX {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= end {
            break;
        }
        let report = world::run(seed, false);
        totals.add(&report);
        if let Some(violation) = report.violation {
            failed.fetch_min(seed, Ordering::Relaxed);
            if keep_going {
                say(&format!("seed {seed}: violated {}: {}", violation.rule, violation.why));
            }
        }
    }
    totals
}

/// The last lines of the failing world's story, and how to read all of it.
fn report_failure(seed: u64) -> ExitCode {
    let report = world::run(seed, true);
    for line in report.log.iter().skip(report.log.len().saturating_sub(60)) {
        say(line);
    }
    match report.violation {
        Some(violation) => {
            say(&format!("seed {seed}: violated {}: {}", violation.rule, violation.why));
        }
        None => say(&format!("seed {seed}: violated a rule, and not when run again")),
    }
    say(&format!("replay: cargo xtask simulate --seed {seed}"));
    ExitCode::from(VIOLATED)
}

fn report_coverage(totals: &Totals) -> ExitCode {
    let counts = branches::counts();
    say("branches of the planner's decisions:");
    for (branch, count) in &counts {
        say(&format!("  {:<24} {count}", branch.as_str()));
    }
    let unreached = counts.iter().filter(|(_, count)| *count == 0).map(|(b, _)| b.as_str());
    let missing: Vec<_> =
        totals.missing().into_iter().map(FaultKind::name).chain(unreached).collect();
    if missing.is_empty() || totals.worlds < COVERS_ALL {
        return ExitCode::SUCCESS;
    }
    say(&format!("never reached: {}", missing.join(", ")));
    ExitCode::from(UNREACHED)
}

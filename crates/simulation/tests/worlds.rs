//! Few worlds, so that a change is judged before the long run.

use simulation::{resume, world};

#[test]
fn the_first_worlds_break_no_rule() {
    for seed in 0..20 {
        let report = world::run(seed, false);
        assert_eq!(report.violation, None, "seed {seed}");
    }
}

/// A planner that goes on from a snapshot sees what one sees that read every record.
#[test]
fn a_fold_may_be_kept_and_taken_up_at_every_record() {
    let mut cuts = 0;
    for seed in 300..306 {
        for (place, records) in world::run(seed, false).journals {
            for cut in 0..=records.len() {
                assert_eq!(resume::judge(&place, &records, cut), None, "seed {seed}");
                cuts += 1;
            }
        }
    }
    assert!(cuts > 500, "{cuts} cuts show little");
}

/// A failing seed is worth nothing if it tells another story the next time.
#[test]
fn one_seed_is_one_story() {
    for seed in 100..110 {
        let (first, second) = (world::run(seed, true), world::run(seed, true));
        assert_eq!(first.log, second.log, "seed {seed}");
        assert_eq!((first.digest, first.faults), (second.digest, second.faults), "seed {seed}");
    }
}

#[test]
fn a_world_is_as_large_as_promised() {
    for seed in 200..220 {
        let report = world::run(seed, false);
        let [runs, inputs, _] = report.totals;
        let faults: u64 = report.faults.values().sum();
        assert!(runs >= 4 && inputs >= 4 && faults >= 5, "seed {seed}: {report:?}");
    }
}

//! Properties of a small world, whatever happens in which order.

use std::collections::BTreeSet;

use planner_core::view::Branch;
use proptest::prelude::*;

use crate::small_world::run;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn in_any_order_every_record_keeps_the_invariants_and_all_comes_to_rest(
        events in prop::collection::vec(any::<(u8, u8)>(), 10..250),
    ) {
        run(&events);
    }
}

#[test]
fn the_small_world_reaches_every_branch() {
    let mut reached = BTreeSet::new();
    let mut seed: u32 = 7;
    for world in 0..300 {
        let mut next = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 24).to_le_bytes()[0]
        };
        // All kinds of events, or mostly crashes, approvals or cancels.
        let (mix, choices): (&[u8], u8) = match world % 4 {
            0 => (&[], 0),
            1 => (&[0, 2, 3, 6, 7, 8, 12, 15, 15, 22], 48),
            2 => (&[0, 2, 3, 6, 7, 8, 9, 12, 13, 19, 19], 48),
            _ => (&[0, 2, 3, 6, 7, 8, 9, 12, 12, 16, 16, 23], 110),
        };
        let events: Vec<(u8, u8)> = (0..200)
            .map(|_| match mix {
                [] => (next(), next()),
                mix => (mix[usize::from(next()) % mix.len()], choices + next() % 60),
            })
            .collect();
        reached.extend(run(&events).reached);
    }
    let missed: Vec<&str> =
        Branch::ALL.iter().filter(|branch| !reached.contains(branch)).map(|b| b.as_str()).collect();
    assert_eq!(missed, Vec::<&str>::new());
}

/// A planner streams on although another one, to whom its delivery came too, acknowledged it.
#[test]
fn a_turn_without_a_delivery_is_watched_until_its_end() {
    run(&[
        (93, 244),
        (122, 77),
        (212, 44),
        (111, 134),
        (2, 94),
        (6, 109),
        (24, 0),
        (2, 9),
        (6, 13),
        (30, 7),
    ]);
}

//! Rankings.

use std::collections::BTreeMap;
use std::time::Duration;

use memory_core::fragment::FragmentId;
use memory_core::kind::Kind;
use memory_core::ranking::{Known, Reading, Weights, decay, diverse, rank};
use proptest::prelude::*;
use proto::ids::{TenantId, ThreadId};
use proto::time::Timestamp;

fn id(turn: u64) -> FragmentId {
    let tenant = TenantId::new("t").unwrap();
    FragmentId { tenant, thread: ThreadId::from_parts(1, 1), turn, fragment: 0 }
}

fn known(importance: f64) -> Known {
    let at = Timestamp(0);
    Known { importance, kind: Kind::Talk, at, invalid_from: None, superseded_by: None }
}

fn turns(lists: &[Vec<u64>], known: &BTreeMap<FragmentId, Known>, reading: Reading) -> Vec<u64> {
    let lists: Vec<Vec<FragmentId>> =
        lists.iter().map(|list| list.iter().copied().map(id).collect()).collect();
    rank(&lists, known, &Weights::default(), reading).into_iter().map(|one| one.id.turn).collect()
}

const NOW: Reading = Reading::All(Timestamp(100));

#[test]
fn lists_are_fused_and_neighbours_come_in() {
    let known = (0..9).map(|turn| (id(turn), known(0.0))).collect();
    let lists = [vec![id(4), id(8)], vec![id(4), id(0)]];
    let ranked = rank(&lists, &known, &Weights::default(), NOW);
    let first = &ranked[0];
    assert_eq!((first.id.turn, first.ranks.clone()), (4, vec![Some(1), Some(1)]));
    assert!((first.score - 2.0 / 11.0).abs() < 1e-12);
    let three = ranked.iter().find(|one| one.id.turn == 3).unwrap();
    assert!((three.score - 0.3 * 2.0 / 11.0).abs() < 1e-12, "{three:?}");
    assert!(ranked.iter().all(|one| one.id.turn != 6), "nothing brings turn 6 in");
}

#[test]
fn importance_decides_between_what_was_found_alike() {
    let known = BTreeMap::from([(id(1), known(0.1)), (id(5), known(0.9))]);
    assert_eq!(turns(&[vec![1, 5], vec![5, 1]], &known, NOW), [5, 1]);
}

#[test]
fn an_update_stands_above_what_it_replaced_and_default_reads_hide_that() {
    let old = Known { invalid_from: Some(Timestamp(50)), superseded_by: Some(id(7)), ..known(1.0) };
    let known = BTreeMap::from([(id(1), old), (id(7), Known { at: Timestamp(50), ..known(0.0) })]);
    assert_eq!(turns(&[vec![1, 7]], &known, NOW), [7, 1]);
    assert_eq!(turns(&[vec![1]], &known, NOW), [1]);
    assert_eq!(turns(&[vec![1, 7]], &known, Reading::AsOf(Timestamp(60))), [7]);
    assert_eq!(turns(&[vec![1, 7]], &known, Reading::AsOf(Timestamp(40))), [1]);
}

#[test]
fn what_was_deleted_meanwhile_is_left_out() {
    assert_eq!(turns(&[vec![1, 2]], &BTreeMap::from([(id(2), known(0.0))]), NOW), [2]);
}

#[test]
fn decay_halves_and_has_a_floor() {
    let weights = Weights { half_life: Some(Duration::from_secs(10)), ..Weights::default() };
    let of = |seconds| decay(&weights, Duration::from_secs(seconds));
    assert!((of(0) - 1.0).abs() < 1e-12 && (of(10) - 0.5).abs() < 1e-12);
    assert!((of(1000) - 0.2).abs() < 1e-12);
    assert!((decay(&Weights::default(), Duration::from_secs(9)) - 1.0).abs() < 1e-12);
}

#[test]
fn diversity_prefers_what_is_unlike() {
    let known: BTreeMap<_, _> = [1, 4, 8].map(|turn| (id(turn), known(0.0))).into();
    let weights = Weights { mmr: Some(0.5), ..Weights::default() };
    let ranked = rank(&[vec![id(1), id(4), id(8)]], &known, &weights, NOW);
    let alike = |a: &FragmentId, b: &FragmentId| if a.turn + b.turn == 5 { 1.0 } else { 0.0 };
    let chosen = diverse(ranked, 2, &weights, alike);
    assert_eq!(chosen.iter().map(|one| one.id.turn).collect::<Vec<_>>(), [1, 8]);
}

proptest! {
    #[test]
    fn linked_updates_are_never_below_what_they_replaced(
        list in Just((0u64..30).collect::<Vec<_>>()).prop_shuffle(),
        pairs in prop::collection::btree_map(0u64..15, 15u64..30, 0..10),
        importance in prop::collection::vec(0.0f64..1.0, 30),
    ) {
        let known: BTreeMap<FragmentId, Known> = (0..30).map(|turn| {
            let at = Timestamp(i64::try_from(turn).unwrap());
            let importance = importance[usize::try_from(turn).unwrap()];
            let superseded_by = pairs.get(&turn).copied().map(id);
            (id(turn), Known { at, superseded_by, ..known(importance) })
        }).collect();
        let order = turns(&[list], &known, NOW);
        let place = |turn: u64| order.iter().position(|one| *one == turn).unwrap();
        for (old, new) in pairs {
            prop_assert!(place(new) < place(old), "{new} must stand above {old}: {order:?}");
        }
    }
}

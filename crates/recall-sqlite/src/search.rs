//! One question over one block.

use std::collections::BTreeMap;

use memory_core::fragment::FragmentId;
use memory_core::lexical::Words;
use memory_core::ranking::{Known, Ranked, Reading, rank};
use ports::recall::Query;

use crate::block::{Block, Slot};
use crate::vectors::Packed;

/// How long each list is.
pub(crate) const LIST: usize = 200;

/// Everything that may be an answer, in order, with the row of each.
pub(crate) fn search(block: &Block, query: &Query) -> (Vec<Ranked>, BTreeMap<FragmentId, i64>) {
    let mut scores = vec![0.0_f32; block.slots()];
    block.words.score(&Words::of(&query.text), &mut scores);
    let by_words = best(block, query, &scores);
    let by_vector = match &query.vector {
        Some(vector) => {
            scores.fill(0.0);
            block.vectors.score(&Packed::of(vector), &mut scores);
            best(block, query, &scores)
        }
        None => Vec::new(),
    };
    let (mut known, mut rows) = (BTreeMap::new(), BTreeMap::new());
    for slot in by_words.iter().chain(&by_vector) {
        note(slot, &mut known, &mut rows);
        let id = &slot.id;
        for turn in [id.turn.checked_sub(1), id.turn.checked_add(1)].into_iter().flatten() {
            let beside = block.turn(id.thread, turn).filter(|slot| slot.is_admitted(query));
            beside.for_each(|slot| note(slot, &mut known, &mut rows));
        }
    }
    let ids = |list: Vec<&Slot>| list.into_iter().map(|slot| slot.id.clone()).collect();
    let lists: [Vec<FragmentId>; 2] = [ids(by_words), ids(by_vector)];
    (rank(&lists, &known, &query.weights, Reading::AsOf(query.about())), rows)
}

fn note(
    slot: &Slot,
    known: &mut BTreeMap<FragmentId, Known>,
    rows: &mut BTreeMap<FragmentId, i64>,
) {
    if rows.insert(slot.id.clone(), slot.row).is_none() {
        known.insert(slot.id.clone(), slot.known.clone());
    }
}

/// The slots that score best among those that may be answers; of equals the newer, then by id.
fn best<'a>(block: &'a Block, query: &Query, scores: &[f32]) -> Vec<&'a Slot> {
    let hits = scores.iter().enumerate().filter(|(_, score)| **score > 0.0);
    let admitted = hits.filter_map(|(at, score)| {
        let slot = block.slot(at)?;
        slot.is_admitted(query).then_some((*score, slot))
    });
    let mut found: Vec<(f32, &Slot)> = admitted.collect();
    let order = |a: &(f32, &Slot), b: &(f32, &Slot)| {
        let newer = b.1.known.at.cmp(&a.1.known.at);
        b.0.total_cmp(&a.0).then(newer).then_with(|| a.1.id.cmp(&b.1.id))
    };
    if found.len() > LIST {
        found.select_nth_unstable_by(LIST, order);
        found.truncate(LIST);
    }
    found.sort_unstable_by(order);
    found.into_iter().map(|(_, slot)| slot).collect()
}

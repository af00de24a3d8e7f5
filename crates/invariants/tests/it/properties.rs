//! Rules over many histories.

use invariants::{Checker, check, check_at_rest};
use proptest::prelude::*;

use crate::history::history;

/// One turn of a sound run: how many calls, how many of them early, how it ends.
#[derive(Clone, Debug)]
struct Shape {
    starts: usize,
    calls: usize,
    early: usize,
    sealed: bool,
    closed: bool,
}

fn shape() -> impl Strategy<Value = Shape> {
    (1..=3_usize, 0..=3_usize, 0..=3_usize, any::<bool>(), any::<bool>()).prop_map(
        |(starts, calls, early, sealed, closed)| Shape {
            starts,
            calls,
            early: early.min(calls),
            sealed,
            closed,
        },
    )
}

/// The words of a sound thread with one run.
fn sound(turns: &[Shape]) -> Vec<String> {
    let mut words = vec!["msg".to_owned()];
    for (number, shape) in turns.iter().enumerate() {
        words.extend(std::iter::repeat_n("turn".to_owned(), shape.starts));
        let named = if shape.sealed { shape.early } else { shape.calls };
        let ids: Vec<String> = (0..named).map(|call| format!("t{number}c{call}")).collect();
        words.extend(ids.iter().take(shape.early).map(|id| format!("call:{id}:effect=checkable")));
        let verb = if shape.sealed { "seal" } else { "end" };
        words.push(format!("{verb}:{}", ids.join(",")));
        words.extend(ids.iter().skip(shape.early).map(|id| format!("call:{id}")));
        let answer = if shape.closed { "close" } else { "obs" };
        words.extend(ids.iter().rev().map(|id| format!("{answer}:{id}")));
    }
    words.push("finish".to_owned());
    words
}

/// Whether a thread without the word is unsound. A call may be closed in place of its dispatch.
fn matters(word: &str, words: &[String]) -> bool {
    let (verb, rest) = word.split_once(':').unwrap_or((word, ""));
    let id = rest.split(':').next().unwrap_or("");
    match verb {
        "call" => !words.contains(&format!("close:{id}")),
        "obs" | "close" | "end" | "seal" => true,
        _ => false,
    }
}

proptest! {
    #[test]
    fn a_sound_history_breaks_no_rule(turns in prop::collection::vec(shape(), 1..6)) {
        prop_assert_eq!(check_at_rest(&history(&sound(&turns).join(" "))), vec![]);
    }

    #[test]
    fn a_lost_record_of_a_turn_or_a_call_is_always_noticed(
        turns in prop::collection::vec(shape(), 1..6),
        lost in any::<prop::sample::Index>(),
    ) {
        let words = sound(&turns);
        let mut placed = history(&words.join(" "));
        let candidates: Vec<usize> =
            (0..words.len()).filter(|&at| matters(&words[at], &words)).collect();
        placed.remove(*lost.get(&candidates));
        prop_assert_ne!(check_at_rest(&placed), vec![]);
    }

    #[test]
    fn judging_one_by_one_finds_what_judging_at_once_finds(
        verbs in prop::collection::vec(
            prop::sample::select(vec![
                "msg", "steer", "cancel", "tick", "turn", "turn:seen=1", "end:a", "end:b?,c!",
                "seal:a", "call:a", "call:b:effect=irreversible", "obs:a", "close:a", "close:b",
                "go:b", "bar:b", "stop", "finish", "finish:run=1",
            ]),
            0..30,
        ),
    ) {
        let placed = history(&verbs.join(" "));
        let mut checker = Checker::new();
        let mut one_by_one = Vec::new();
        for (count, record) in placed.iter().enumerate() {
            one_by_one.extend(checker.push(record));
            prop_assert_eq!(&one_by_one, &check(&placed[..=count]));
        }
    }
}

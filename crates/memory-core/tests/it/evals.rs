//! The evaluation: what it reads, and figures on conversations of our own.

use memory_core::eval::data::{read, write};
use memory_core::eval::generate::dialogue;
use memory_core::eval::measure::figures;
use memory_core::ranking::Weights;

#[test]
fn lines_are_read_as_they_are_written() {
    let made: Vec<_> = (0..3).map(|number| dialogue(7, number)).collect();
    assert_eq!(read(&write(&made)).unwrap(), made);
    assert_eq!(made[0], dialogue(7, 0), "the same seed makes the same");
    assert_ne!(made[0].turns, dialogue(8, 0).turns);
}

#[test]
fn ids_may_be_numbers_and_questions_may_come_first() {
    let text = r#"
{"session": 1, "question": "Which port?", "evidence": [2]}
{"session": 1, "turns": [{"id": 1, "role": "user", "text": "hi"}, {"id": 2, "role": "user", "text": "port 1"}]}
{"session": 1, "question": "Nothing?", "evidence": []}"#;
    let read = read(text).unwrap();
    assert_eq!(read.len(), 1);
    assert_eq!((read[0].questions.len(), read[0].questions[0].evidence.clone()), (1, vec![1]));
}

#[test]
fn what_cannot_be_used_is_told_with_its_line() {
    let text = r#"{"session": "a", "turns": [{"id": "1", "role": "user", "text": "x"}, {"id": "1", "role": "user", "text": "y"}]}
{"session": "b", "question": "q", "evidence": ["1"]}
{"session": "a", "question": "q", "evidence": ["9"]}
{"session": "a"}
nonsense"#;
    let told: Vec<String> = read(text).unwrap_err().iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 5, "{told:?}");
    assert!(told[0].starts_with("line 1: turns: the id `1` comes twice"), "{told:?}");
    assert!(told.iter().any(|one| one == "line 2: session: no line has the turns of `b`"));
    assert!(told.iter().any(|one| one == "line 3: evidence: session `a` has no turn `9`"));
}

/// The promises that can be held on data of our own; those on other people's are measured, see
/// docs/memory.md.
#[test]
fn the_figures_hold_what_is_promised() {
    let made: Vec<_> = (0..6).map(|number| dialogue(11, number)).collect();
    let figures = figures(&made, None, &Weights::default());
    let found = |name: &str| figures.search.iter().find(|(known, _)| known == name).unwrap().1;
    let (plain, full) = (found("lexical"), found("lexical + neighbour + prior"));
    assert!(full.frac_at_10 >= plain.frac_at_10 - 0.02, "{plain:?} {full:?}");
    let profile = |name: &str| figures.keep.iter().find(|one| one.name == name).unwrap();
    let (raw, calibrated) = (profile("raw"), profile("calibrated"));
    assert!(calibrated.kept[1].covered >= profile("newest first").kept[1].covered + 0.1);
    assert!(calibrated.kept[1].covered >= raw.kept[1].covered, "{raw:?} {calibrated:?}");
    let above = calibrated.above_threshold.unwrap();
    assert!((0.08..=0.25).contains(&above), "{above}");
    assert_eq!(figures.updates.0, figures.updates.1, "updates stand above what they replaced");
    assert!(figures.updates.0 > 10);
    assert_eq!(figures.pinned.0, figures.pinned.1, "what is pinned is known as such");
}

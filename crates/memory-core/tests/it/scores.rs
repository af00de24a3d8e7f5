//! Importance.

use memory_core::entity::{Entity, EntityKind, Extract, Rules};
use memory_core::fragment::Origin;
use memory_core::importance::{Explanation, Novelty, Profile, Scoring, Session, Turn, Verdict};
use memory_core::kind::{Kind, classify};
use memory_core::ranks::{Ranks, peaked};
use memory_core::text::tokens;
use proptest::prelude::*;

fn say(session: &mut Session, text: &str) -> Explanation {
    say_near(session, text, None)
}

fn hear(session: &mut Session, turns: &[String]) {
    for text in turns {
        say(session, text);
    }
}

fn say_near(session: &mut Session, text: &str, vector: Option<&[f32]>) -> Explanation {
    session.score(Turn {
        text,
        kind: classify(text, &Origin::User),
        tokens: tokens(text),
        entities: &Rules.entities(text),
        vector,
        nearest: None,
    })
}

fn session(profile: Profile) -> Session {
    Session::new(Scoring { profile, ..Scoring::default() })
}

fn talk() -> impl Strategy<Value = Vec<String>> {
    let word = prop::sample::select(vec![
        "deploy",
        "server",
        "Berlin",
        "8080",
        "yesterday",
        "coffee",
        "we",
        "the",
        "v1.2.3",
        "error",
        "monitor",
        "Alice",
        "/etc/hosts",
        "12 ms",
        "plans",
        "garden",
        "music",
    ]);
    let turn = prop::collection::vec(word, 3..20).prop_map(|words| words.join(" "));
    prop::collection::vec(turn, 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_fact_that_is_repeated_scores_lower(before in talk(), between in talk()) {
        let mut session = session(Profile::Calibrated);
        hear(&mut session, &before);
        let fact = "The staging database of Orion listens on port 5439.";
        let first = say(&mut session, fact);
        hear(&mut session, &between);
        let again = say(&mut session, fact);
        prop_assert!(again.score < first.score, "{} then {}", first.score, again.score);
        prop_assert_eq!(again.verdict, Verdict::Repeats);
    }

    #[test]
    fn a_correction_scores_no_lower_than_what_it_corrects_said_again(before in talk()) {
        let mut first = session(Profile::Calibrated);
        hear(&mut first, &before);
        say(&mut first, "The database listens on port 5439.");
        let mut second = first.clone();
        let again = say(&mut first, "The database listens on port 5439.");
        let correction = say(&mut second, "No, the database listens on port 8080.");
        prop_assert_eq!(correction.kind, Kind::Correction);
        prop_assert!(correction.score > again.score);
        prop_assert!(correction.novelty_rank >= 0.9, "{}", correction.novelty_rank);
    }

    #[test]
    fn the_same_turns_have_the_same_scores(turns in talk()) {
        let all = |session: &mut Session| turns.iter().map(|t| say(session, t)).collect::<Vec<_>>();
        let (mut a, mut b) = (session(Profile::Balanced), session(Profile::Balanced));
        prop_assert_eq!(all(&mut a), all(&mut b));
        let kept: Session = serde_json::from_str(&serde_json::to_string(&a).unwrap()).unwrap();
        prop_assert_eq!(kept, a);
    }

    #[test]
    fn scores_are_within_their_range_whatever_is_said(text in ".{0,400}") {
        let mut session = session(Profile::Calibrated);
        for told in [say(&mut session, &text), say(&mut session, &text)] {
            prop_assert!((0.0..=1.0).contains(&told.score), "{told:?}");
        }
    }
}

/// Ranks of values that come in any order are uniform, so 0.7 means "about the top fifth": exactly
/// 18.75 % for two that do not depend on each other.
#[test]
fn seven_tenths_is_the_top_fifth() {
    let (mut a, mut b) = (Ranks::new(&peaked(0.1, 0.3, 0.6)), Ranks::new(&peaked(0.4, 0.6, 0.9)));
    let mut seed: u64 = 7;
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        f64::from(u32::try_from(seed >> 33).unwrap()) / f64::from(1_u32 << 31)
    };
    let (mut above, mut all) = (0.0, 0.0);
    for turn in 0..20_000 {
        // Two shapes that differ from the priors and from each other.
        let (x, y) = (next().powi(3), 0.3 + 0.4 * next());
        let score = 0.6 * a.rank(x) + 0.4 * b.rank(y);
        a.add(x);
        b.add(y);
        if turn > 500 {
            all += 1.0;
            above += if score > 0.7 { 1.0 } else { 0.0 };
        }
    }
    let share: f64 = above / all;
    assert!((share - 0.1875).abs() < 0.015, "{share}");
}

#[test]
fn the_raw_formula_is_the_literal_one() {
    let mut raw = session(Profile::Raw);
    say_near(&mut raw, "hello there", Some(&[1.0, 0.0]));
    let told = say_near(&mut raw, "meet Alice in Berlin", Some(&[0.6, 0.8]));
    let (entities, words) = (2.0, 4.0);
    assert!((told.mass - entities / words).abs() < 1e-9, "{told:?}");
    assert!((told.newness - (1.0 - 0.6)).abs() < 1e-6, "{told:?}");
    assert!((told.score - (0.6 * 0.5 + 0.4 * 0.4)).abs() < 1e-6, "{told:?}");
}

#[test]
fn novelty_looks_as_far_back_as_it_says() {
    let newness = |novelty| {
        let mut session = Session::new(Scoring { novelty, ..Scoring::default() });
        say_near(&mut session, "a", Some(&[1.0, 0.0]));
        say_near(&mut session, "b", Some(&[0.0, 1.0]));
        say_near(&mut session, "c", Some(&[1.0, 0.0])).newness
    };
    assert!((newness(Novelty::Latest) - 1.0).abs() < 1e-9);
    assert!(newness(Novelty::Recent(2)).abs() < 1e-9);
    assert!(newness(Novelty::Session).abs() < 1e-9);
}

#[test]
fn pinned_kinds_stay_whatever_their_score() {
    let mut session = session(Profile::Calibrated);
    let told = say(&mut session, "Always answer in French.");
    assert_eq!((told.kind, told.verdict), (Kind::Instruction, Verdict::Pinned));
}

fn named(text: &str) -> Vec<(EntityKind, String)> {
    Rules.entities(text).into_iter().map(|Entity { kind, text }| (kind, text)).collect()
}

#[test]
fn entities_are_found_by_their_look() {
    use EntityKind::{
        Amount, Email, ErrorCode, Identifier, Name, Path, Quote, Scalar, Symbol, Time, Url, Version,
    };
    let cases: Vec<(&str, Vec<(EntityKind, &str)>)> = vec![
        ("see https://a.example/x, please", vec![(Url, "https://a.example/x")]),
        ("mail bob@example.org now", vec![(Email, "bob@example.org")]),
        ("edit /etc/nginx/nginx.conf", vec![(Path, "/etc/nginx/nginx.conf")]),
        ("use v1.4.2 of it", vec![(Version, "v1.4.2")]),
        ("it fails with E0308", vec![(ErrorCode, "E0308")]),
        ("exit code 137", vec![(ErrorCode, "137")]),
        ("it takes 250 ms or 3 weeks", vec![(Amount, "250 ms"), (Amount, "3 weeks")]),
        ("costs $40", vec![(Amount, "$40")]),
        (
            "due 2026-03-15, yesterday at 10:30",
            vec![(Time, "2026-03-15"), (Time, "yesterday"), (Time, "10:30")],
        ),
        ("they wrote \"the blue door\"", vec![(Quote, "the blue door")]),
        ("call parse_line() or HashMap", vec![(Symbol, "parse_line"), (Symbol, "HashMap")]),
        ("node web-03 is 10.0.0.7", vec![(Identifier, "web-03"), (Identifier, "10.0.0.7")]),
        ("we met Ada Lovelace in Paris.", vec![(Name, "Ada Lovelace"), (Name, "Paris")]),
        ("Nothing here. Just talk.", vec![]),
        (r#"{"port": 8080, "up": true}"#, vec![(Scalar, "port=8080"), (Scalar, "up=true")]),
        ("wir treffen uns morgen", vec![(Time, "morgen")]),
        ("the key is [redacted token 1] for now", vec![]),
    ];
    for (text, expected) in cases {
        let expected: Vec<_> = expected.into_iter().map(|(k, t)| (k, t.to_owned())).collect();
        assert_eq!(named(text), expected, "{text}");
    }
}

#[test]
fn a_dump_counts_no_more_than_a_few_of_its_kind() {
    let dump: Vec<String> = (0..500).map(|n| format!("id-{n}")).collect();
    let found = Rules.entities(&dump.join(" "));
    assert!(memory_core::entity::mass(&found) <= 6.0 * 0.8 + 1e-9);
}

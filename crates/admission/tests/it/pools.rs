//! Limits are kept and used, whoever asks.

use admission::pool::{Because, Decision, Event, Limits, Pool};

use crate::provider::{Counted, play};

const SECOND: u64 = 1_000_000;

fn known() -> Limits {
    Limits { requests: Some(3000), ..Limits::default() }
}

/// Less than one in a hundred is refused, more than nine in ten of what is possible is answered.
fn judge(counted: &Counted, what: &str) {
    let answered: u64 = counted.answered.values().sum();
    assert!(counted.refused * 100 < counted.sent, "{what}: {counted:?}");
    assert!(answered * 10 > 60 * 50 * 9, "{what}: {counted:?}");
}

#[test]
fn a_known_limit_is_kept_and_used_by_four_planners() {
    for seed in 0..20 {
        judge(&play(known(), &[("acme", 75)], seed), &format!("seed {seed}"));
    }
}

#[test]
fn an_unknown_limit_is_learned() {
    for seed in 0..20 {
        judge(&play(Limits::default(), &[("acme", 75)], seed), &format!("seed {seed}"));
    }
}

#[test]
fn a_limit_that_settings_put_too_high_is_learned_too() {
    let high = Limits { requests: Some(6000), ..Limits::default() };
    for seed in 0..20 {
        judge(&play(high, &[("acme", 75)], seed), &format!("seed {seed}"));
    }
}

#[test]
fn a_tenant_that_floods_leaves_the_others_their_share() {
    let counted = play(known(), &[("loud", 400), ("quiet", 20), ("small", 5)], 7);
    judge(&counted, "three tenants");
    let got = |tenant: &str| counted.answered[tenant];
    assert!(got("quiet") > 19 * 50 && got("small") > 4 * 50, "{counted:?}");
    let even = play(known(), &[("one", 400), ("two", 60)], 8);
    let (one, two) = (even.answered["one"], even.answered["two"]);
    assert!(one.abs_diff(two) * 10 < one + two, "{even:?}");
}

fn ask(pool: &mut Pool, limits: &Limits, tenant: &str, tokens: u64, now: u64) -> Decision {
    let id = format!("{tenant}-{now}");
    pool.apply(limits, &Event::Ask { id, tenant: tenant.into(), tokens, lease: SECOND }, now)
}

#[test]
fn tokens_are_reserved_by_a_guess_and_settled_by_use() {
    // A thousand tokens a second.
    let limits = Limits { tokens: Some(60_000), ..Limits::default() };
    let mut pool = Pool::default();
    let now = 100 * SECOND;
    assert_eq!(ask(&mut pool, &limits, "a", 2000, now), Decision::Go(0));
    let later = now + SECOND / 2;
    assert!(matches!(ask(&mut pool, &limits, "a", 10, later), Decision::Wait(_, Because::Tokens)));
    let done = Event::Done { id: format!("a-{now}"), reserved: 2000, used: Some(100) };
    assert_eq!(pool.apply(&limits, &done, later), Decision::Noted);
    assert_eq!(ask(&mut pool, &limits, "a", 10, later), Decision::Go(0));
}

#[test]
fn places_are_bounded_and_void_when_their_holder_is_gone() {
    let limits = Limits { open: Some(1), ..Limits::default() };
    let mut pool = Pool::default();
    let now = 100 * SECOND;
    assert_eq!(ask(&mut pool, &limits, "a", 0, now), Decision::Go(0));
    let (soon, later) = (now + 1, now + 2 * SECOND);
    assert!(matches!(ask(&mut pool, &limits, "b", 0, soon), Decision::Wait(_, Because::Open)));
    assert_eq!(ask(&mut pool, &limits, "b", 0, later), Decision::Go(0));
}

#[test]
fn a_pause_that_the_provider_asks_for_is_everybodys_and_bounded() {
    let (limits, mut pool, now) = (Limits::default(), Pool::default(), 100 * SECOND);
    let wait = Some(24 * 3600 * SECOND);
    pool.apply(&limits, &Event::Refused { id: "x".into(), reserved: 0, wait }, now);
    let Decision::Wait(pause, Because::Blocked) = ask(&mut pool, &limits, "b", 0, now) else {
        panic!("not blocked")
    };
    assert_eq!(pause, 60 * SECOND);
}

#[test]
fn a_clock_that_was_set_back_holds_nobody_up_for_long() {
    let (limits, mut pool) = (known(), Pool::default());
    ask(&mut pool, &limits, "a", 0, 10_000 * SECOND);
    let Decision::Wait(pause, _) = ask(&mut pool, &limits, "a", 0, 100 * SECOND) else {
        panic!("it was set back by hours")
    };
    assert!(pause <= 60 * SECOND);
}

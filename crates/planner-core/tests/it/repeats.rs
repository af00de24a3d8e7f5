//! Calls that keep coming back.

use std::fmt::Write as _;

use expect_test::{Expect, expect};
use planner_core::repeats::refusal;
use planner_core::thread::Thread;

use crate::world::{World, arguments, call_id, result};

/// Asks for calls `tool:argument:result`, one turn each, and tells which would be refused.
fn check(calls: &str, expected: &Expect) {
    let mut told = String::new();
    let mut thread = Thread::new(crate::world::place());
    for (number, call) in calls.split_whitespace().enumerate() {
        let mut parts = call.split(':');
        let mut part = || parts.next().unwrap();
        let (tool, argument, came) = (part(), part(), part());
        let refused = refusal(&thread, 1, tool, &arguments(argument), 3);
        let verdict = refused
            .as_deref()
            .map_or("made", |why| if why.contains("pattern") { "pattern" } else { "same result" });
        writeln!(told, "{tool}({argument}) {verdict}").unwrap();
        let id = call_id(&format!("c{number}"));
        let mut observation = result(&id, came, World::new().now);
        if refused.is_some() {
            observation.code = Some(proto::error_code::ErrorCode::RepeatedCall);
        }
        let turn = u32::try_from(number).unwrap();
        thread
            .calls
            .insert(id.clone(), crate::world::answered(&id, tool, argument, turn, observation));
    }
    expected.assert_eq(&told);
}

#[test]
fn the_same_call_with_the_same_result_is_refused_and_stays_refused() {
    check(
        "probe:a:up probe:a:up probe:a:up probe:a:up probe:a:up",
        &expect![[r#"
        probe(a) made
        probe(a) made
        probe(a) made
        probe(a) same result
        probe(a) same result
    "#]],
    );
}

#[test]
fn polling_with_changing_results_is_not_refused() {
    check(
        "probe:a:1 probe:a:2 probe:a:3 probe:a:4 probe:a:5 probe:a:6",
        &expect![[r#"
        probe(a) made
        probe(a) made
        probe(a) made
        probe(a) made
        probe(a) made
        probe(a) made
    "#]],
    );
}

#[test]
fn other_arguments_are_another_call() {
    check(
        "probe:a:up probe:b:up probe:c:up probe:d:up probe:e:up",
        &expect![[r#"
        probe(a) made
        probe(b) made
        probe(c) made
        probe(d) made
        probe(e) made
    "#]],
    );
}

#[test]
fn two_calls_in_turn_that_bring_the_same_are_a_pattern() {
    check(
        "restart:a:ok deploy:b:ok restart:a:ok deploy:b:ok restart:a:ok deploy:b:ok restart:a:ok restart:c:ok restart:a:ok",
        &expect![[r#"
            restart(a) made
            deploy(b) made
            restart(a) made
            deploy(b) made
            restart(a) made
            deploy(b) made
            restart(a) pattern
            restart(c) made
            restart(a) made
        "#]],
    );
}

#[test]
fn three_calls_in_turn_that_bring_the_same_are_a_pattern() {
    check(
        "probe:a:down restart:b:ok deploy:c:ok probe:a:down restart:b:ok deploy:c:ok probe:a:down restart:b:ok deploy:c:ok probe:a:down",
        &expect![[r#"
            probe(a) made
            restart(b) made
            deploy(c) made
            probe(a) made
            restart(b) made
            deploy(c) made
            probe(a) made
            restart(b) made
            deploy(c) made
            probe(a) pattern
        "#]],
    );
}

#[test]
fn calls_in_turn_that_follow_something_that_moves_go_on() {
    check(
        "probe:a:10% note:b:1 probe:a:20% note:b:2 probe:a:30% note:b:3 probe:a:40% note:b:4 probe:a:50%",
        &expect![[r#"
            probe(a) made
            note(b) made
            probe(a) made
            note(b) made
            probe(a) made
            note(b) made
            probe(a) made
            note(b) made
            probe(a) made
        "#]],
    );
}

#[test]
fn what_was_changed_may_be_looked_at_again() {
    check(
        "probe:a:down probe:a:down probe:a:down restart:a:done probe:a:down probe:a:down probe:a:down probe:a:down",
        &expect![[r#"
            probe(a) made
            probe(a) made
            probe(a) made
            restart(a) made
            probe(a) made
            probe(a) made
            probe(a) made
            probe(a) same result
        "#]],
    );
}

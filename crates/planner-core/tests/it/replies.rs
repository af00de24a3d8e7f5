//! Calls that cannot be made are answered at once, and the run goes on.

use expect_test::expect;

use crate::story::check;

#[test]
fn calls_that_cannot_be_made_are_answered_at_once() {
    check(
        "in a message hi
         go
         call destroy
         call probe y=text
         call secret
         broken probe {\"x\":
         end
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              completed ""; c1 destroy unknown_tool; c2 probe invalid_arguments; c3 secret not_permitted; c4 probe malformed_arguments [observing]
            next_turn: turn 1.2 start 1 of main by p1 holding 1, seen 3 [reasoning]
            reason: reason [reasoning]
        "#]],
    );
}

#[test]
fn a_tool_that_nobody_serves_is_unavailable() {
    check(
        "in a message hi
         go
         call probe
         call ghost
         end",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              c1 probe goes out early
              completed ""; c1 probe; c2 ghost unavailable [acting]
        "#]],
    );
}

#[test]
fn a_whole_reply_cut_by_a_crash_keeps_exactly_what_was_dispatched() {
    check(
        "in a message hi
         go
         say one moment
         call restart
         call probe x=1
         call note
         planner p2
         wake 1
         owner gone
         kept one moment
         go
         obs c2 up
         go
         obs c3 noted
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              c2 probe goes out early
              c3 note goes out early
            seal_lost: sealed OwnerLost "one moment"; c2 probe; c3 note [acting]
            arm: arm for 65 s [acting]
            wait: rest [acting]
            arm: arm for 65 s [acting]
            wait: rest [acting]
            next_turn: turn 1.2 start 1 of main by p2 holding 7, seen 7 [reasoning]
            reason: reason [reasoning]
        "#]],
    );
}

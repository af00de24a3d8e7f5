//! Which turn reads what, and who answers.

use expect_test::expect;

use crate::story::check;

#[test]
fn a_queued_message_waits_for_the_next_run() {
    check(
        "in a message one
         go
         in b message two
         owner working
         go
         say first
         end
         go
         say second
         end
         go
         rest",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
            owner_works: rest [reasoning]
              completed "first" [evaluating]
            finish: run 1 Answered Answer, seen 4, 1 turns, 0 calls: "first" [initializing]
            new_run: turn 2.1 start 1 of main by p1 holding 3, seen 5 [reasoning]
            reason: reason [reasoning]
              completed "second" [evaluating]
            finish: run 2 Answered Answer, seen 7, 1 turns, 0 calls: "second" [terminating]
            at_rest: rest [terminating]
        "#]],
    );
}

#[test]
fn an_input_between_start_and_end_of_a_turn_is_unread() {
    check(
        "in a message one
         race in b steer also this
         go
         say first
         end
         go
         say both
         race in c steer and that
         end
         go
         say all
         end
         go
         rest",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              completed "first" [evaluating]
            next_turn: turn 1.2 start 1 of main by p1 holding 1, seen 4 [reasoning]
            reason: reason [reasoning]
              completed "both" [evaluating]
            finish: run 1 Answered Answer, seen 6, 2 turns, 0 calls: "both" [initializing]
            new_run: turn 2.1 start 1 of main by p1 holding 1, seen 8 [reasoning]
            reason: reason [reasoning]
              completed "all" [evaluating]
            finish: run 2 Answered Answer, seen 10, 1 turns, 0 calls: "all" [terminating]
            at_rest: rest [terminating]
        "#]],
    );
}

#[test]
fn the_same_key_is_the_same_input_for_ever() {
    check(
        "in a message one
         in a message one
         go
         say first
         end
         go
         in a message one
         go
         rest",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 2, seen 2 [reasoning]
            reason: reason [reasoning]
              completed "first" [evaluating]
            finish: run 1 Answered Answer, seen 4, 1 turns, 0 calls: "first" [terminating]
            at_rest: rest [terminating]
            at_rest: rest [terminating]
        "#]],
    );
}

#[test]
fn a_steer_without_a_run_is_a_message() {
    check(
        "in a steer hello agent=main
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
        "#]],
    );
}

#[test]
fn a_steer_keeps_a_run_going_that_has_answered() {
    check(
        "in a message one
         go
         say first
         in b steer also
         owner working
         go
         end
         wake 1
         go
         state",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
            owner_works: rest [reasoning]
              completed "first" [evaluating]
            next_turn: turn 1.2 start 1 of main by p1 holding 1, seen 4 [reasoning]
            reason: reason [reasoning]
              unread [], open [], notes [], late 0, stopping false
        "#]],
    );
}

#[test]
fn words_that_end_a_run_end_it_when_they_steer_it() {
    check(
        "in a message one
         go
         call probe
         end
         go
         in b message later
         in c steer that's all, thanks
         in d message later still
         go
         obs c1 up
         go
         state",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              c1 probe goes out early
              completed ""; c1 probe [acting]
            arm: arm for 65 s [acting]
            wait: rest [acting]
            arm: arm for 65 s [acting]
            wait: rest [acting]
            user_ended: run 1 Answered UserEnded, seen 8, 1 turns, 1 calls: "Ended at the user's word." [initializing]
            new_run: turn 2.1 start 1 of main by p1 holding 8, seen 9 [reasoning]
            reason: reason [reasoning]
              unread [], open [], notes [], late 0, stopping false
        "#]],
    );
}

#[test]
fn a_goodbye_after_a_run_is_not_answered_unless_work_came_with_it() {
    check(
        "in a message one
         go
         say first
         end
         go
         in b message bye
         go
         rest
         in c message one more thing
         in d message bye
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              completed "first" [evaluating]
            finish: run 1 Answered Answer, seen 3, 1 turns, 0 calls: "first" [terminating]
            at_rest: rest [terminating]
            user_ended: run 2 Answered UserEnded, seen 5, 0 turns, 0 calls: "Ended at the user's word." [terminating]
            at_rest: rest [terminating]
            new_run: turn 3.1 start 1 of main by p1 holding 8, seen 8 [reasoning]
            reason: reason [reasoning]
        "#]],
    );
}

#[test]
fn an_agent_may_ignore_such_words() {
    check(
        "agent main end_intent=off
         in a message one
         go
         say first
         end
         go
         in b message bye
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              completed "first" [evaluating]
            finish: run 1 Answered Answer, seen 3, 1 turns, 0 calls: "first" [terminating]
            at_rest: rest [terminating]
            new_run: turn 2.1 start 1 of main by p1 holding 5, seen 5 [reasoning]
            reason: reason [reasoning]
        "#]],
    );
}

#[test]
fn a_thread_that_names_no_agent_ends_with_an_error() {
    check(
        "in a steer hello
         go
         rest",
        &expect![[r#"
            no_agent: run 1 Failed Error not_found, seen 1, 0 turns, 0 calls: "The run cannot go on: no agent was named." [terminating]
            at_rest: rest [terminating]
        "#]],
    );
}

#[test]
fn an_unknown_agent_is_waited_for_and_then_given_up() {
    check(
        "in a message hello agent=other
         go
         wait 600
         go
         rest",
        &expect![[r#"
            await_agent: hand back [initializing]
            no_agent: run 1 Failed Error not_found, seen 1, 0 turns, 0 calls: "The run cannot go on: no planner knows the agent `other`." [terminating]
            at_rest: rest [terminating]
        "#]],
    );
}

#[test]
fn an_agent_that_disappears_is_waited_for_since_the_last_record() {
    check(
        "in a message hello
         go
         call probe
         end
         go
         in b message queued
         wait 50
         obs c1 up
         agent main forgotten
         go
         wait 600
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              c1 probe goes out early
              completed ""; c1 probe [acting]
            arm: arm for 65 s [acting]
            wait: rest [acting]
            await_agent: hand back [observing]
            no_agent: run 1 Failed Error not_found, seen 6, 1 turns, 1 calls: "The run cannot go on: no planner knows the agent `main`." [initializing]
            await_agent: hand back [initializing]
        "#]],
    );
}

#[test]
fn a_steer_hands_the_run_to_the_agent_it_names_and_a_queued_message_does_not() {
    check(
        "agent second end_intent=on
         in a message hello
         go
         call probe
         end
         go
         in b message later agent=main
         in c steer you do it agent=second
         in d message still later agent=main
         obs c1 up
         go
         say hi
         end
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              c1 probe goes out early
              completed ""; c1 probe [acting]
            arm: arm for 65 s [acting]
            wait: rest [acting]
            next_turn: turn 1.2 start 1 of second by p1 holding 8, seen 8 [reasoning]
            reason: reason [reasoning]
              completed "hi" [evaluating]
            finish: run 1 Answered Answer, seen 10, 2 turns, 1 calls: "hi" [initializing]
            new_run: turn 2.1 start 1 of main by p1 holding 8, seen 11 [reasoning]
            reason: reason [reasoning]
        "#]],
    );
}

//! Why runs end and what they answer.

use expect_test::expect;

use crate::story::check;

#[test]
fn a_reply_without_calls_is_the_answer() {
    check(
        "in a message hi
         go
         say hello
         end
         go
         go
         rest",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              completed "hello" [evaluating]
            finish: run 1 Answered Answer, seen 3, 1 turns, 0 calls: "hello" [terminating]
            at_rest: rest [terminating]
            at_rest: rest [terminating]
        "#]],
    );
}

#[test]
fn an_answer_is_never_empty() {
    check(
        "in a message hi
         go
         end
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              completed "" [evaluating]
            finish: run 1 Answered Answer, seen 3, 1 turns, 0 calls: "The agent ended without a word." [terminating]
            at_rest: rest [terminating]
        "#]],
    );
}

#[test]
fn confidence_counts_when_it_is_above_the_bar() {
    check(
        "agent main protocol=contract
         in a message hi
         go
         say sure
         end confidence=0.95
         go
         in b message hi
         go
         say not sure
         end confidence=0.9
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              completed "sure" [evaluating]
            finish: run 1 Answered Confident, seen 3, 1 turns, 0 calls: "sure" [terminating]
            at_rest: rest [terminating]
            new_run: turn 2.1 start 1 of main by p1 holding 5, seen 5 [reasoning]
            reason: reason [reasoning]
              completed "not sure" [evaluating]
            finish: run 2 Answered Answer, seen 7, 1 turns, 0 calls: "not sure" [terminating]
            at_rest: rest [terminating]
        "#]],
    );
}

#[test]
fn finish_ends_a_run_when_the_model_is_sure_and_nothing_else_is_open() {
    check(
        "in a message hi
         go
         call finish confidence=0.95 answer=done
         end
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              completed ""; c1 finish ok [evaluating]
            finish: run 1 Answered Confident, seen 3, 1 turns, 1 calls: "done" [terminating]
            at_rest: rest [terminating]
        "#]],
    );
    check(
        "in a message hi
         go
         call finish confidence=0.5 answer=done
         call finish confidence=0.95
         end
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              completed ""; c1 finish invalid_arguments; c2 finish invalid_arguments [observing]
            next_turn: turn 1.2 start 1 of main by p1 holding 1, seen 3 [reasoning]
            reason: reason [reasoning]
        "#]],
    );
    check(
        "in a message hi
         go
         call finish confidence=0.95 answer=done
         call probe
         end
         go
         obs c2 up
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              c2 probe goes out early
              completed ""; c1 finish invalid_arguments; c2 probe [acting]
            arm: arm for 65 s [acting]
            wait: rest [acting]
            next_turn: turn 1.2 start 1 of main by p1 holding 5, seen 5 [reasoning]
            reason: reason [reasoning]
        "#]],
    );
}

#[test]
fn two_turns_that_bring_nothing_new_end_the_run() {
    check(
        "in a message hi
         go
         call probe
         end
         obs c1 up
         go
         call probe
         end
         obs c2 up
         go
         call probe
         end
         obs c3 up
         go
         rest",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              c1 probe goes out early
              completed ""; c1 probe [acting]
            next_turn: turn 1.2 start 1 of main by p1 holding 5, seen 5 [reasoning]
            reason: reason [reasoning]
              c2 probe goes out early
              completed ""; c2 probe [acting]
            next_turn: turn 1.3 start 1 of main by p1 holding 9, seen 9 [reasoning]
            reason: reason [reasoning]
              c3 probe goes out early
              completed ""; c3 probe [acting]
            nothing_new: run 1 Stopped NothingNew, seen 13, 3 turns, 3 calls: "Two turns in a row brought no new call, so the run ended." [terminating]
            at_rest: rest [terminating]
        "#]],
    );
}

#[test]
fn new_results_and_new_words_keep_a_run_going() {
    check(
        "in a message hi
         go
         call probe
         end
         obs c1 starting
         go
         call probe
         end
         obs c2 still starting
         go
         call probe
         end
         obs c3 still starting
         go
         in b steer go on
         owner working
         go
         call probe
         end
         obs c4 running
         go
         call probe
         end
         obs c5 running
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              c1 probe goes out early
              completed ""; c1 probe [acting]
            next_turn: turn 1.2 start 1 of main by p1 holding 5, seen 5 [reasoning]
            reason: reason [reasoning]
              c2 probe goes out early
              completed ""; c2 probe [acting]
            next_turn: turn 1.3 start 1 of main by p1 holding 9, seen 9 [reasoning]
            reason: reason [reasoning]
              c3 probe goes out early
              completed ""; c3 probe [acting]
            next_turn: turn 1.4 start 1 of main by p1 holding 13, seen 13 [reasoning]
            reason: reason [reasoning]
            owner_works: rest [reasoning]
              c4 probe goes out early
              completed ""; c4 probe [acting]
            next_turn: turn 1.5 start 1 of main by p1 holding 18, seen 18 [reasoning]
            reason: reason [reasoning]
              c5 probe goes out early
              completed ""; c5 probe [acting]
            next_turn: turn 1.6 start 1 of main by p1 holding 22, seen 22 [reasoning]
            reason: reason [reasoning]
        "#]],
    );
}

#[test]
fn an_answer_that_breaks_the_schema_is_sent_back_once() {
    check(
        "agent main schema=object
         in a message hi
         go
         say hello
         end
         go
         evaluated breaks it is not JSON
         go
         say {}
         end
         go
         evaluated fits
         go
         rest",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              completed "hello" [evaluating]
            evaluate: evaluate [evaluating]
            repair: turn 1.2 start 1 of main by p1 holding 1, seen 3, note "The answer does not fit the output schema: it is not JSON. Answer again so that it fits." [reasoning]
            reason: reason [reasoning]
              completed "{}" [evaluating]
            evaluate: evaluate [evaluating]
            finish: run 1 Answered Answer, seen 5, 2 turns, 0 calls: "{}" [terminating]
            at_rest: rest [terminating]
        "#]],
    );
    check(
        "agent main schema=object
         in a message hi
         go
         say hello
         end
         evaluated breaks it is not JSON
         go
         say hello
         end
         evaluated breaks it is not JSON
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              completed "hello" [evaluating]
            repair: turn 1.2 start 1 of main by p1 holding 1, seen 3, note "The answer does not fit the output schema: it is not JSON. Answer again so that it fits." [reasoning]
            reason: reason [reasoning]
              completed "hello" [evaluating]
            finish: run 1 Answered Answer unevaluated, seen 5, 2 turns, 0 calls: "hello" [terminating]
            at_rest: rest [terminating]
        "#]],
    );
}

#[test]
fn a_check_that_takes_too_long_accepts_the_answer() {
    check(
        "agent main schema=object
         in a message hi
         go
         say hello
         end
         evaluated overrun
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              completed "hello" [evaluating]
            finish: run 1 Answered Answer unevaluated, seen 3, 1 turns, 0 calls: "hello" [terminating]
            at_rest: rest [terminating]
        "#]],
    );
}

//! Budgets: what is known is the answer, and later words start the next run.

use expect_test::expect;

use crate::story::check;

#[test]
fn the_turn_limit_ends_a_run_with_what_is_known() {
    check(
        "agent main max_turns=2
         in a message hi
         go
         call probe x=1
         end
         obs c1 up
         go
         call probe x=2
         end
         obs c2 up
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
            limit: run 1 Stopped MaxTurns, seen 9, 2 turns, 2 calls: "The run reached its turn limit." [terminating]
            at_rest: rest [terminating]
        "#]],
    );
}

#[test]
fn the_token_limit_ends_a_run_with_what_is_known() {
    check(
        "agent main max_tokens=100
         in a message hi
         go
         call probe
         end tokens=100
         obs c1 up
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              c1 probe goes out early
              completed ""; c1 probe [acting]
            limit: run 1 Stopped MaxTokens, seen 5, 1 turns, 1 calls: "The run used up its tokens." [terminating]
            at_rest: rest [terminating]
        "#]],
    );
}

#[test]
fn the_money_limit_ends_a_run_with_what_is_known() {
    check(
        "agent main max_usd=100
         in a message hi
         go
         call probe x=1
         end
         obs c1 up
         go
         call probe x=2
         end usd=100
         obs c2 up
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
            limit: run 1 Stopped MaxMoney, seen 9, 2 turns, 2 calls: "The run used up its money." [terminating]
            at_rest: rest [terminating]
        "#]],
    );
}

#[test]
fn the_time_limit_ends_a_run_with_what_is_known() {
    check(
        "agent main max_wall=60
         in a message hi
         go
         call probe
         end
         wait 60
         obs c1 up
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              c1 probe goes out early
              completed ""; c1 probe [acting]
            limit: run 1 Stopped MaxWallTime, seen 5, 1 turns, 1 calls: "The run used up its time." [terminating]
            at_rest: rest [terminating]
        "#]],
    );
}

#[test]
fn the_time_in_which_nobody_could_act_is_not_the_runs_own() {
    check(
        "agent main max_wall=600
         in a message hi
         go
         call probe
         end
         wait 86400
         obs c1 up
         go
         call probe x=2
         end
         wait 500
         obs c2 up
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
        "#]],
    );
}

#[test]
fn the_last_allowed_calls_may_still_be_answered_with() {
    check(
        "agent main max_calls=2
         in a message hi
         go
         call probe x=1
         call probe x=2
         end
         obs c1 up
         obs c2 up
         go
         call probe x=3
         end
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              c1 probe goes out early
              c2 probe goes out early
              completed ""; c1 probe; c2 probe [acting]
            next_turn: turn 1.2 start 1 of main by p1 holding 7, seen 7 [reasoning]
            reason: reason [reasoning]
              completed ""; c3 probe budget_spent [observing]
            limit: run 1 Stopped MaxToolCalls, seen 9, 2 turns, 3 calls: "The run used up its tool calls." [terminating]
            at_rest: rest [terminating]
        "#]],
    );
}

#[test]
fn a_task_that_is_rated_has_its_own_turn_limit() {
    check(
        "agent main max_turns=1
         in a message hi complexity=1
         go
         call probe x=1
         end
         obs c1 up
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              c1 probe goes out early
              completed ""; c1 probe [acting]
            next_turn: turn 1.2 start 1 of main by p1 holding 5, seen 5 [reasoning]
            reason: reason [reasoning]
        "#]],
    );
}

#[test]
fn an_answer_at_the_limit_counts_and_the_steer_behind_it_starts_the_next_run() {
    check(
        "agent main max_turns=1
         in a message hi
         go
         say the answer
         race in b steer and more
         end
         in b steer and more
         go
         state",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              completed "the answer" [evaluating]
            finish: run 1 Answered Answer, seen 3, 1 turns, 0 calls: "the answer" [initializing]
            new_run: turn 2.1 start 1 of main by p1 holding 4, seen 6 [reasoning]
            reason: reason [reasoning]
              unread [], open [], notes [], late 0, stopping false
        "#]],
    );
}

#[test]
fn a_steer_at_the_limit_starts_the_next_run() {
    check(
        "agent main max_turns=1
         in a message hi
         go
         call probe
         end
         in b steer and more
         obs c1 up
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              c1 probe goes out early
              completed ""; c1 probe [acting]
            limit: run 1 Stopped MaxTurns, seen 4, 1 turns, 1 calls: "The run reached its turn limit." [initializing]
            new_run: turn 2.1 start 1 of main by p1 holding 6, seen 7 [reasoning]
            reason: reason [reasoning]
        "#]],
    );
}

#[test]
fn a_repair_beyond_the_limit_ends_the_run() {
    check(
        "agent main schema=object max_turns=1
         in a message hi
         go
         say hello
         end
         evaluated breaks it is not JSON
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
              completed "hello" [evaluating]
            limit: run 1 Stopped MaxTurns, seen 3, 1 turns, 0 calls: "The run reached its turn limit." [terminating]
            at_rest: rest [terminating]
        "#]],
    );
}

#[test]
fn a_restarted_turn_counts_once_against_the_limit() {
    check(
        "agent main max_turns=2
         in a message hi
         go
         crash
         go
         crash
         go
         call probe
         end
         obs c1 up
         go",
        &expect![[r#"
            new_run: turn 1.1 start 1 of main by p1 holding 1, seen 1 [reasoning]
            reason: reason [reasoning]
            start_again: turn 1.1 start 2 of main by p1 holding 1, seen 2 [reasoning]
            reason: reason [reasoning]
            start_again: turn 1.1 start 3 of main by p1 holding 1, seen 3 [reasoning]
            reason: reason [reasoning]
              c1 probe goes out early
              completed ""; c1 probe [acting]
            next_turn: turn 1.2 start 1 of main by p1 holding 7, seen 7 [reasoning]
            reason: reason [reasoning]
        "#]],
    );
}
